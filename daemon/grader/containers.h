// One container from creation to removal, and the list of those that are somebody's now. Internal to daemon/grader.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "daemon/engine/engine.h"
#include "daemon/grader/stop_reason.h"

namespace kbench::grader {

struct Finished {
  engine::Container state;
  bool deadline_hit = false;  // it was killed by us for that
  bool disturbed = false;
  std::string log;  // empty when the Engine did not give it
};

// The Engine could not kill it: a process is stuck in a driver. What it ran on must not be used again.
struct Unkillable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Containers {
 public:
  Containers(engine::Engine& engine, std::function<void(const std::string&)> log)
      : engine_(engine), log_(std::move(log)) {}

  // Creates, starts, waits, collects. The container is gone when this returns or throws (or left to `sweep` when the
  // Engine is away). Throws EngineError, Stopped (after killing it), Unkillable.
  Finished run(const engine::ContainerSpec& spec, engine::milliseconds deadline, const std::stop_token& stop);

  // Removes every container of `owner` that is nobody's now. How many.
  int sweep(const std::string& owner);

 private:
  engine::Engine& engine_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::multiset<std::string> names_;
};

}  // namespace kbench::grader
