// Emptying the processor's caches. Inside the folder only.
#pragma once

#include <cstdint>
#include <string>

#include "verifier/device/device.h"

namespace kbench::verify {

// Whether single lines can be dropped here (x86's clflushopt). Else reading is all there is.
bool can_drop_lines();
// Writes the region's lines back and takes them out of every cache of every processor, whatever mapping of that memory
// brought them there. Only where can_drop_lines().
void drop_lines(Region region);

// How much is to be read to empty caches of this size: four times that, as far as it is a small part of the memory. A
// gigabyte does in any case; 32 MiB where the tensors' own lines are dropped, for what a worker keeps beside them: on a
// large cache it stays, which gains something only with an input that is the same in every call.
std::uint64_t evicted_bytes(std::uint64_t cache_bytes, std::uint64_t memory_bytes, bool lines_dropped);
// Empty when that is enough.
std::string eviction_warning(std::uint64_t cache_bytes, std::uint64_t evicted, bool lines_dropped);

}  // namespace kbench::verify
