// Shared-memory tiles on the ordinary cores: FP8 is widened as it is loaded.
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kTile = 64, kDepth = 16,
              kEach = 4;  // a block: 64 x 64 of C with 16 x 16 threads, 4 x 4 elements a thread

__global__ void __launch_bounds__(256) tiles(const kbench_args a) {
  __shared__ float left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const long long m0 = blockIdx.y * static_cast<long long>(kTile), n0 = blockIdx.x * static_cast<long long>(kTile);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float acc[kEach][kEach] = {};
  for (long long k0 = 0; k0 < a.K; k0 += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      const int row = i / kDepth, k = i % kDepth;
      const bool deep = k0 + k < a.K;
      left[k][row] = deep && m0 + row < a.M ? float(a.A[(m0 + row) * a.K + k0 + k]) : 0;
      right[k][row] = deep && n0 + row < a.N ? float(a.B[(n0 + row) * a.K + k0 + k]) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) acc[i][j] += left[k][y + 16 * i] * right[k][x + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j) {
      const long long m = m0 + y + 16 * i, n = n0 + x + 16 * j;
      if (m < a.M && n < a.N) a.C[m * a.N + n] = kb::bf16(acc[i][j] * a.sa[m] * a.sb[n] + float(a.bias[n]));
    }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  const dim3 blocks(unsigned((args->N + kTile - 1) / kTile), unsigned((args->M + kTile - 1) / kTile));
  tiles<<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(*args);
  return cudaGetLastError();
}
