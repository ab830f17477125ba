// Memory of the cuda device: private buffers, and shared ones that a worker imports by file descriptor.
#pragma once

#include <memory>

#include "verifier/device/device.h"

namespace kbench::verify {

std::unique_ptr<Buffer> cuda_private(std::uint64_t bytes);
std::unique_ptr<SharedBuffer> cuda_shared(std::uint64_t bytes, int ordinal);

}  // namespace kbench::verify
