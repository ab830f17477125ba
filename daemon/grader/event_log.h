// The events of one attempt as they come from the verifier, live or from its spool: each taken once, in order, checked.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kbench::grader {

// Safe from any thread. The last event (verdict or infra_error) is kept back: what the attempt ends with is for the
// grader to say.
class EventLog {
 public:
  using Sink =
      std::function<void(std::int64_t seq, const std::string& type, const std::string& json)>;  // throws: not taken
  explicit EventLog(Sink sink) : sink_(std::move(sink)) {}

  struct Answer {
    int status;         // 200 taken; 400 malformed; 409 a gap; 429 too many events
    std::int64_t next;  // the first one that is lacking
  };
  // NDJSON lines; those there already are skipped. What comes before a fault is taken.
  Answer take(std::string_view lines);
  std::int64_t next() const;
  std::optional<std::string> last() const;  // JSON of the verdict or infra_error event
  std::int64_t last_seq() const;            // its number

 private:
  Answer take_line(std::string_view line);
  Sink sink_;
  mutable std::mutex mutex_;
  std::int64_t next_ = 1;
  std::optional<std::string> last_;
};

}  // namespace kbench::grader
