// Why an attempt must end before its time. Internal to daemon/grader.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace kbench::grader {

enum class StopReason : std::uint8_t { none, cancel, lost, shutdown };

// The first reason counts.
class Stopper {
 public:
  void stop(StopReason reason) {
    StopReason none = StopReason::none;
    reason_.compare_exchange_strong(none, reason);
    source_.request_stop();
  }
  StopReason reason() const { return reason_; }
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::atomic<StopReason> reason_ = StopReason::none;
  std::stop_source source_;
};

struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped") {}
};

// Ours: "image", "engine", "gpu", "task", "compiler", "verifier", "files". Never the submission's.
struct InfraFault : std::runtime_error {
  InfraFault(std::string part, const std::string& message, bool no_retry = false)
      : std::runtime_error(part + ": " + message), cause(std::move(part)), final(no_retry) {}
  std::string cause;
  bool final;
};

}  // namespace kbench::grader
