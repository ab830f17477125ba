// Evidence of the kernel's OOM killer. Inside the folder only.
#pragma once

#include <cstdint>

namespace kbench::process {

// How often the OOM killer has struck in this container (cgroup v2 memory.events, v1 memory.oom_control); 0 when
// neither can be read.
std::uint64_t oom_kills();

}  // namespace kbench::process
