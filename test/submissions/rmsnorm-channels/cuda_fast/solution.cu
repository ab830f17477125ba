// RMSNorm over channels: a thread a pixel, its channels in registers where there are few, so that x is read once.
// Neighbouring threads have neighbouring pixels: every load of a warp is one line.
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256;
constexpr int kKept = 64;  // channels that a thread keeps

__global__ void __launch_bounds__(kThreads)
    kept(const float* __restrict__ x, float* __restrict__ y, long long pixels, long long P, float eps) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= pixels) return;
  const long long first = i / P * kKept * P + i % P;
  float value[kKept];
#pragma unroll
  for (int c = 0; c < kKept; ++c) value[c] = __ldcs(x + first + c * P);
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kKept; ++c) sum += value[c] * value[c];
  const float scale = 1 / sqrtf(sum / kKept + eps);
#pragma unroll
  for (int c = 0; c < kKept; ++c) __stcs(y + first + c * P, value[c] * scale);
}

__global__ void __launch_bounds__(kThreads)
    any(const float* __restrict__ x, float* __restrict__ y, long long pixels, long long C, long long P, float eps) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= pixels) return;
  const long long first = i / P * C * P + i % P;
  float sum = 0;
  for (long long c = 0; c < C; ++c) sum += x[first + c * P] * x[first + c * P];
  const float scale = 1 / sqrtf(sum / static_cast<float>(C) + eps);
  for (long long c = 0; c < C; ++c) y[first + c * P] = x[first + c * P] * scale;
}

}  // namespace

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  const long long pixels = a->B * a->P;
  const auto blocks = static_cast<unsigned>((pixels + kThreads - 1) / kThreads);
  const auto on = static_cast<cudaStream_t>(stream);
  if (a->C == kKept)
    kept<<<blocks, kThreads, 0, on>>>(a->x, a->y, pixels, a->P, a->eps);
  else
    any<<<blocks, kThreads, 0, on>>>(a->x, a->y, pixels, a->C, a->P, a->eps);
  return cudaGetLastError();
}
