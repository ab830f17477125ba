// The kernels whose elements are large programs of their own, compiled apart: generators and comparison passes.
#pragma once

#include <cuda_runtime.h>

#include "verifier/device/device.h"

namespace kbench::verify {

// Both enqueue on the stream; `units` is the number of SMs. `sums` is device memory for one PassSums.
void launch_fill(const Fill& fill, std::uint64_t seed, std::byte* to, int units, cudaStream_t stream);
PassSums run_pass(const PassPlan& plan, int units, PassSums* sums, cudaStream_t stream);  // waits

}  // namespace kbench::verify
