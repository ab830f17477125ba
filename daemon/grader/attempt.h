// One attempt, from images to outcome, straight down. Internal to daemon/grader.
#pragma once

#include <atomic>

#include "daemon/grader/containers.h"
#include "daemon/grader/images.h"
#include "daemon/grader/stop_reason.h"
#include "daemon/grader/work_folder.h"

namespace kbench::grader {

// What all attempts of a grader share.
struct Site {
  const Options& options;
  WorkFolder& work_folder;
  engine::Engine& engine;
  Containers& containers;
  Images& images;
  gpu::Slots& slots;
  const std::atomic<gpu::Mode>& mode;
  const gpu::AttachOptions& attach;
  const Tasks& tasks;
  AttemptSource& source;
  gpu::Inventory* inventory;  // null: no GPUs
  const std::string& seccomp;
  const std::function<void(const std::string&)>& log;
};

// Leaves nothing behind, however it ends. Throws Stopped (see stopper.reason()), EngineError, StoreFault, NoSlot,
// InfraFault, and std::exception for the rest; none of them is the submission's fault.
store::Outcome grade_attempt(Site& site, const store::Lease& lease, Stopper& stopper, std::uint32_t compile_uid);

}  // namespace kbench::grader
