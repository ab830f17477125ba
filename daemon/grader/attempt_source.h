// Where a grader gets its work and leaves what it found: the store in the same process, or a server over HTTP.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/store/store.h"

namespace kbench::grader {

class AttemptSource {
 public:
  virtual ~AttemptSource() = default;
  // Blocks for at most `wait`; nullopt when there was nothing.
  virtual std::optional<store::Lease> claim(const store::Wanted& wanted, std::chrono::milliseconds wait) = 0;
  enum class Hold : std::uint8_t {
    kept,
    lost,
    cancel
  };  // lost: somebody else holds it now; cancel: the submitter wants it ended
  virtual Hold renew(const std::string& id, int attempt) = 0;
  virtual bool state(const std::string& id, int attempt, store::State state) = 0;
  virtual bool event(const std::string& id, int attempt, std::int64_t attempt_seq, const std::string& type,
                     const std::string& json) = 0;
  virtual bool finish(const std::string& id, int attempt, const store::Outcome& outcome) = 0;
  virtual bool release(const std::string& id, int attempt) = 0;
  virtual std::vector<store::Lease> held() = 0;  // leases of this grader from before a restart
};

}  // namespace kbench::grader
