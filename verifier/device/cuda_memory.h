// Memory of the cuda device: private buffers, and shared ones that a worker imports by file descriptor.
#pragma once

#include <memory>

#include "verifier/device/device.h"

namespace kbench::verify {

// On one of `gpus` GPUs, reached from all of them (private memory: where peer access is enabled).
std::unique_ptr<Buffer> cuda_private(std::uint64_t bytes, int gpu);
std::unique_ptr<SharedBuffer> cuda_shared(std::uint64_t bytes, int gpu, int gpus);

}  // namespace kbench::verify
