// What the host says of itself. Inside the folder only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verifier/device/device.h"

namespace kbench::verify {

struct MemoryFacts {
  std::uint64_t total = 0, available = 0;  // of the machine
  std::uint64_t limit = UINT64_MAX,
                used = 0;  // of this container, what the kernel can let go of not counted; UINT64_MAX: none
};
MemoryFacts read_memory();
MemoryFacts read_memory(const std::string& proc, const std::string& groups);  // from these folders

Facts cpu_facts(const std::vector<int>& processors);

// Jiffies of these processors since boot, all and idle; what the hypervisor took counts as busy.
struct Jiffies {
  std::uint64_t all = 0, idle = 0;
};
Jiffies read_jiffies(const std::vector<int>& processors);
// How often this container was made to wait for its processor quota; nullopt when there is none to read.
std::optional<std::uint64_t> read_throttled();

}  // namespace kbench::verify
