// A thread eight neighbouring elements, 112 bytes on their way before it looks up whose they are; most eights have one
// owner.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256, kEach = 8;

struct Rates {
  float inverse_bc1, inverse_bc2;
};

// The tensor that owns element i: off[low] <= i < off[low + 1].
__device__ __forceinline__ int owner(const kbench_args& a, long long i) {
  int low = 0, high = int(a.NT);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (a.off[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

__device__ __forceinline__ void step(const kbench_args& a, const Rates& rates, float g, float& P, float& m, float& v,
                                     float lr, float wd) {
  m = a.b1 * m + (1 - a.b1) * g;
  v = a.b2 * v + (1 - a.b2) * g * g;
  P -= lr * (m * rates.inverse_bc1 / (sqrtf(v * rates.inverse_bc2) + a.eps) + wd * P);
}

__global__ void __launch_bounds__(kThreads) elements(const kbench_args a, const Rates rates) {
  const long long i = (blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x) * kEach;
  if (i >= a.N) return;
  const float gs = a.gs[0];
  if (i + kEach > a.N) {
    for (long long e = i; e < a.N; ++e) {
      const int s = owner(a, e);
      step(a, rates, float(a.G[e]) * gs, a.P[e], a.m[e], a.v[e], a.lr[s], a.wd[s]);
      a.Pb[e] = kb::bf16(a.P[e]);
    }
    return;
  }
  alignas(16) float P[kEach], m[kEach], v[kEach];
  alignas(16) __nv_bfloat16 G[kEach];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    reinterpret_cast<float4*>(P)[half] = reinterpret_cast<const float4*>(a.P + i)[half];
    reinterpret_cast<float4*>(m)[half] = reinterpret_cast<const float4*>(a.m + i)[half];
    reinterpret_cast<float4*>(v)[half] = reinterpret_cast<const float4*>(a.v + i)[half];
  }
  *reinterpret_cast<uint4*>(G) = *reinterpret_cast<const uint4*>(a.G + i);
  int s = owner(a, i);
  float lr = a.lr[s], wd = a.wd[s];
  long long end = a.off[s + 1];
  alignas(16) __nv_bfloat16 copy[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (i + e >= end) {
      do end = a.off[++s + 1];
      while (i + e >= end);
      lr = a.lr[s], wd = a.wd[s];
    }
    step(a, rates, __bfloat162float(G[e]) * gs, P[e], m[e], v[e], lr, wd);
    copy[e] = __float2bfloat16_rn(P[e]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    reinterpret_cast<float4*>(a.P + i)[half] = reinterpret_cast<const float4*>(P)[half];
    reinterpret_cast<float4*>(a.m + i)[half] = reinterpret_cast<const float4*>(m)[half];
    reinterpret_cast<float4*>(a.v + i)[half] = reinterpret_cast<const float4*>(v)[half];
  }
  *reinterpret_cast<uint4*>(a.Pb + i) = *reinterpret_cast<const uint4*>(copy);
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  const long long blocks = (args->N + kThreads * kEach - 1) / (kThreads * kEach);
  elements<<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(*args,
                                                                                 Rates{1 / args->bc1, 1 / args->bc2});
  return cudaGetLastError();
}
