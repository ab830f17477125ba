// Names of submissions: "s-" and 26 characters of Crockford's base 32, 48 bits of time and 80 of chance, as ULIDs.
#pragma once

#include <mutex>
#include <string>

#include "daemon/store/store.h"

namespace kbench::store {

class Ids {
 public:
  // Greater than all before it from this object and those it follows, whatever the clock does; from any thread.
  std::string next(Millis now);
  void follow(const std::string& id);

 private:
  std::mutex mutex_;
  Millis time_ = 0;
  unsigned __int128 chance_ = 0;
};

bool is_id(const std::string& text);

}  // namespace kbench::store
