// One container from creation to removal, and the list of those that are somebody's now. Internal to daemon/grader.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/engine/engine.h"
#include "daemon/grader/stop_reason.h"

namespace kbench::grader {

struct Finished {
  engine::Container state;
  bool deadline_hit = false;  // it was killed by us for that
  bool disturbed = false;
  std::string log;                // empty when the Engine did not give it
  std::shared_ptr<void> remains;  // the container, ended: it is removed when this goes (or left to `sweep`)
};

// The Engine could not kill it: a process is stuck in a driver. What it ran on must not be used again.
struct Unkillable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One that is nobody's and that the Engine cannot end.
struct Stuck {
  engine::Container container;
  std::string why;
};

class Containers {
 public:
  Containers(engine::Engine& engine, std::function<void(const std::string&)> log)
      : engine_(engine), log_(std::move(log)) {}

  // Creates, starts, waits, collects. When this returns or throws the container has ended, and when it throws it is
  // gone, too (or left to `sweep`): while the Engine does not answer and it may still run, this waits. Throws
  // EngineError, Stopped (after killing it), Unkillable.
  Finished run(const engine::ContainerSpec& spec, engine::milliseconds deadline, const std::stop_token& stop);

  // Removes every container of `owner` that is nobody's now, but for those returned: what they run on must not be used.
  // Throws EngineError when the Engine does not answer.
  std::vector<Stuck> sweep(const std::string& owner);

  // We are going down: nobody waits for the Engine any more. What is left the next start sweeps before it takes work.
  void give_up();

 private:
  Finished run_to_end(const engine::ContainerSpec& spec, engine::milliseconds deadline, const std::stop_token& stop,
                      std::string& id);
  // Returns when what it ran on is free: the container has ended, was never made, or nobody waits any more.
  void put_away(const std::string& name, const std::string& owner, std::string id, bool ended);
  std::string why_stuck(const std::string& id, bool again);

  engine::Engine& engine_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable given_up_changed_;
  bool given_up_ = false;
  std::multiset<std::string> names_;
  std::set<std::string> stuck_;  // ids: at the last sweep
};

}  // namespace kbench::grader
