// Sixteen lanes a head: each loads 16 bytes of k and of v, they find the largest among them by shuffles, and each
// stores 8 bytes.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256, kLanes = 16, kWidth = 8;

__device__ float largest(const uint4& pack) {
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&pack);
  __nv_bfloat162 most = __habs2(pairs[0]);
#pragma unroll
  for (int i = 1; i < kWidth / 2; ++i) most = __hmax2(most, __habs2(pairs[i]));
  float amax = fmaxf(__low2float(most), __high2float(most));
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, half, kLanes));
  return amax;
}

__device__ uint2 quantised(const uint4& pack, float sc) {
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&pack);
  alignas(8) __nv_fp8x2_storage_t out[kWidth / 2];
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {
    const float2 t = __bfloat1622float2(pairs[i]);
    out[i] = __nv_cvt_float2_to_fp8x2(make_float2(__fdiv_rn(t.x, sc), __fdiv_rn(t.y, sc)), __NV_SATFINITE, __NV_E4M3);
  }
  return *reinterpret_cast<uint2*>(out);
}

// D = 128.
__global__ void __launch_bounds__(kThreads) heads(const kbench_args a) {
  const long long i = (blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const bool inside = i < a.N * a.Hk;
  const long long source = inside ? i : a.N * a.Hk - 1;
  const long long slot = a.slot[source / a.Hk];
  const uint4 k = __ldcs(reinterpret_cast<const uint4*>(a.k) + source * kLanes + lane);
  const uint4 v = __ldcs(reinterpret_cast<const uint4*>(a.v) + source * kLanes + lane);
  const float ks = fmaxf(largest(k), 1e-6f) / 448.0f, vs = fmaxf(largest(v), 1e-6f) / 448.0f;
  if (!inside || slot < 0) return;
  const long long at = slot * a.Hk + i % a.Hk;
  reinterpret_cast<uint2*>(a.kc)[at * kLanes + lane] = quantised(k, ks);
  reinterpret_cast<uint2*>(a.vc)[at * kLanes + lane] = quantised(v, vs);
  if (lane == 0) a.ks[at] = ks, a.vs[at] = vs;
}

// Any D: a thread a head.
__device__ void append(const kb::bf16* from, long long D, kb::e4m3* to, float* scale) {
  float amax = 0;
  for (long long d = 0; d < D; ++d) amax = fmaxf(amax, fabsf(float(from[d])));
  const float sc = fmaxf(amax, 1e-6f) / 448.0f;
  for (long long d = 0; d < D; ++d) to[d] = kb::e4m3(float(from[d]) / sc);
  *scale = sc;
}

__global__ void heads_of_any_size(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= a.N * a.Hk) return;
  const long long slot = a.slot[i / a.Hk];
  if (slot < 0) return;
  const long long at = slot * a.Hk + i % a.Hk;
  append(a.k + i * a.D, a.D, a.kc + at * a.D, a.ks + at);
  append(a.v + i * a.D, a.D, a.vc + at * a.D, a.vs + at);
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const long long heads_all = args->N * args->Hk;
  if (args->D == kLanes * kWidth)
    heads<<<unsigned((heads_all * kLanes + kThreads - 1) / kThreads), kThreads, 0, stream>>>(*args);
  else
    heads_of_any_size<<<unsigned((heads_all + 255) / 256), 256, 0, stream>>>(*args);
  return cudaGetLastError();
}
