// Names of submissions: "s-" and 26 characters of Crockford's base 32, 48 bits of time and 80 of chance, as ULIDs.
#pragma once

#include <mutex>
#include <string>

#include "daemon/store/store.h"

namespace kbench::store {

class Ids {
 public:
  std::string next(
      Millis now);  // greater than all before it from this object, whatever the clock does; from any thread

 private:
  std::mutex mutex_;
  Millis time_ = 0;
  unsigned __int128 chance_ = 0;
};

bool is_id(const std::string& text);

}  // namespace kbench::store
