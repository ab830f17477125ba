// The kernels whose elements are large programs of their own, compiled apart: generators and comparison passes.
#pragma once

#include <cuda_runtime.h>

#include "verifier/device/device.h"

namespace kbench::verify {

// Both enqueue on the stream; `units` is the number of SMs. `scratch` is device memory of inputs::kFinishScratchMax
// bytes, `sums` for one PassSums.
void launch_fill(const Fill& fill, std::uint64_t seed, std::byte* to, std::byte* scratch, int units,
                 cudaStream_t stream);
PassSums run_pass(const PassPlan& plan, int units, PassSums* sums, cudaStream_t stream);  // waits

}  // namespace kbench::verify
