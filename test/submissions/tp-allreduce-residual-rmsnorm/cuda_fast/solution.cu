// One kernel a GPU, a block a row: both partial sums and the residual by 16-byte loads, the peer's over NVLink, kept in
// registers until the norm is known. Nothing is written to the peer, so the GPUs need not wait for one another.
#include <cuda_runtime.h>

#include "task.h"

constexpr int kThreads = 256, kVectors = 4, kWide = 8;  // a thread's loads, elements each: rows of up to 8192

struct Rank {
  const kb::bf16 *own, *peer, *res, *w;
  kb::bf16 *res_out, *y;
  long long D;
  float eps;
};

union Vector {
  uint4 whole;
  kb::bf16 each[kWide];
};
__device__ Vector load(const kb::bf16* at) {
  Vector v;
  v.whole = __ldcs(reinterpret_cast<const uint4*>(at));
  return v;
}

__global__ void __launch_bounds__(kThreads) fused(const __grid_constant__ Rank r) {
  const long long row = blockIdx.x * r.D;
  Vector peer[kVectors], own[kVectors], res[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const long long d = (v * kThreads + threadIdx.x) * kWide;
    if (d >= r.D) continue;
    peer[v] = load(r.peer + row + d);  // the farthest first
    own[v] = load(r.own + row + d);
    res[v] = load(r.res + row + d);
  }
  float squares = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const long long d = (v * kThreads + threadIdx.x) * kWide;
    if (d >= r.D) continue;
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      own[v].each[i] = kb::bf16(float(own[v].each[i]) + float(peer[v].each[i]) + float(res[v].each[i]));
      squares += float(own[v].each[i]) * float(own[v].each[i]);
    }
    __stcs(reinterpret_cast<uint4*>(r.res_out + row + d), own[v].whole);
  }
  for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(~0u, squares, offset);
  __shared__ float of_warps[kThreads / 32];
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0;
  for (const float part : of_warps) squares += part;
  const float scale = rsqrtf(squares / float(r.D) + r.eps);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const long long d = (v * kThreads + threadIdx.x) * kWide;
    if (d >= r.D) continue;
    Vector w, y;
    w.whole = *reinterpret_cast<const uint4*>(r.w + d);
#pragma unroll
    for (int i = 0; i < kWide; ++i) y.each[i] = kb::bf16(float(own[v].each[i]) * scale * float(w.each[i]));
    __stcs(reinterpret_cast<uint4*>(r.y + row + d), y.whole);
  }
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream streams) {
  if (a->D % kWide != 0 || a->D > kThreads * kVectors * kWide) return 1;
  for (int gpu = 0; gpu < kbench_gpus; ++gpu) {
    const Rank r{a->part[gpu], a->part[1 - gpu], a->res[gpu], a->w[gpu], a->res_out[gpu], a->y[gpu], a->D, a->eps};
    cudaSetDevice(gpu);
    fused<<<static_cast<unsigned>(a->TT), kThreads, 0, static_cast<cudaStream_t>(kbench_stream_of(streams, gpu))>>>(r);
  }
  cudaSetDevice(0);
  return static_cast<int>(cudaGetLastError());
}
