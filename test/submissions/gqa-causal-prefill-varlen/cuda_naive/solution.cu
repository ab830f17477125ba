// A warp a query: its lanes share the head's numbers, key after key.
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kEach = 8;  // of D a lane, at most: D <= 256

__global__ void queries(const kbench_args a) {
  const long long i = (blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x) / 32;
  if (i >= a.TT * a.HQ) return;
  const int lane = threadIdx.x % 32;
  const long long t = i / a.HQ, h = i % a.HQ, hk = h / (a.HQ / a.HK), D = a.D;
  long long n = 0;
  while (t >= a.cu[n + 1]) ++n;
  const float scale = rsqrtf(float(D));
  float q[kEach], sum[kEach] = {};
  for (int e = 0; e < kEach; ++e) q[e] = lane + 32 * e < D ? float(a.q[i * D + lane + 32 * e]) : 0;
  float top = -INFINITY, weight = 0;
  for (long long s = a.cu[n]; s <= t; ++s) {
    const long long at = (s * a.HK + hk) * D + lane;
    float p = 0;
    for (int e = 0; e < kEach; ++e)
      if (lane + 32 * e < D) p += q[e] * float(a.k[at + 32 * e]);
    for (int half = 16; half > 0; half /= 2) p += __shfl_xor_sync(~0u, p, half);
    p *= scale;
    const float higher = fmaxf(top, p), shrink = expf(top - higher), now = expf(p - higher);
    top = higher;
    weight = weight * shrink + now;
    for (int e = 0; e < kEach; ++e)
      if (lane + 32 * e < D) sum[e] = sum[e] * shrink + now * float(a.v[at + 32 * e]);
  }
  for (int e = 0; e < kEach; ++e)
    if (lane + 32 * e < D) a.o[i * D + lane + 32 * e] = kb::bf16(sum[e] / weight);
  if (lane == 0) a.lse[i] = top + logf(weight);
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  queries<<<unsigned((args->TT * args->HQ + 3) / 4), 128, 0, static_cast<cudaStream_t>(stream)>>>(*args);
  return cudaGetLastError();
}
