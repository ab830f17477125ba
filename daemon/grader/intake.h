// Whether work may be taken: what is wrong with the machine, remembered from the last look. Internal to daemon/grader.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/grader/grader.h"

namespace kbench::grader {

class Intake {
 public:
  Intake(const Options& options, std::function<void(const std::string&)> log)
      : options_(options), log_(std::move(log)) {}

  // Part, or "part.look" where two look at it. An empty cause clears it.
  void set_fault(const std::string& part, const std::string& cause);
  std::vector<Fault> faults() const;
  bool has_fault(const std::string& part) const;

  // Throws EngineError.
  void look_at_engine(engine::Engine& engine);  // its limits and its disk
  void look_at_slots(engine::Engine& engine, const gpu::Slots& slots);
  void disk_is_full(const std::string& cause);  // the Engine said so: believed for a while, whatever statvfs says

  // Waits until work may be taken; for which devices. Empty: stopped.
  std::vector<std::string> devices(const std::stop_token& stop);

 private:
  void look_at_disk(const std::string& data_root);

  const Options& options_;
  const std::function<void(const std::string&)> log_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::string> faults_;
  std::vector<std::string> devices_;  // with a slot and a base image
  std::atomic<std::chrono::steady_clock::time_point> disk_trusted_again_ = std::chrono::steady_clock::time_point();
};

}  // namespace kbench::grader
