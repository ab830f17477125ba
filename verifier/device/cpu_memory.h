// The cpu device's memory. Inside the folder only.
#pragma once

#include <cstdint>
#include <memory>

#include "verifier/device/device.h"

namespace kbench::verify {

// Both throw OutOfDeviceMemory. Memory is there when they return, not promised: no SIGBUS or OOM kill at the first
// touch.
std::unique_ptr<Buffer> cpu_private(std::uint64_t bytes, int gpu = 0);
// Not asked for: what has been had before, and only been given back meanwhile.
std::unique_ptr<Buffer> cpu_private_again(std::uint64_t bytes);
// The back guard starts right behind the tensor's last byte.
std::unique_ptr<SharedBuffer> cpu_shared(std::uint64_t bytes, int gpu = 0);
// What can still be had: of the machine, and of the memory limit of this control group where there is one.
std::uint64_t cpu_free_bytes();

}  // namespace kbench::verify
