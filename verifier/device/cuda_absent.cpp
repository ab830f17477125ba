// Stands in for the cuda device in builds without CUDA.
#include "verifier/device/device.h"

namespace kbench::verify {

std::unique_ptr<Device> open_cuda_device(int) { throw DeviceFault("this build of kbench-verify has no CUDA"); }

}  // namespace kbench::verify
