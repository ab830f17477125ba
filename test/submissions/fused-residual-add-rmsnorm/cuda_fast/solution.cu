// A block a row, the row in registers between the reduction and the results: every byte is moved once, 16 at a time.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 512, kWidth = 8;  // elements a thread loads at a time

struct alignas(16) Pack {
  __nv_bfloat162 pair[kWidth / 2];
};

template <int packs>  // of a thread
__global__ void __launch_bounds__(kThreads) rows(const kbench_args a) {
  __shared__ float sums[kThreads / 32];
  const long long row = blockIdx.x * a.C;
  const Pack* x = reinterpret_cast<const Pack*>(a.x + row);
  const Pack* res = reinterpret_cast<const Pack*>(a.res + row);
  const Pack* w = reinterpret_cast<const Pack*>(a.w);
  const int count = int(a.C / kWidth);
  float2 t[packs][kWidth / 2];
  float sum = 0;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int at = p * kThreads + int(threadIdx.x);
    if (at >= count) break;
    const Pack left = x[at], right = res[at];
    Pack out;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) {
      const float2 l = __bfloat1622float2(left.pair[i]), r = __bfloat1622float2(right.pair[i]);
      t[p][i] = make_float2(l.x + r.x, l.y + r.y);
      out.pair[i] = __float22bfloat162_rn(t[p][i]);
      sum += t[p][i].x * t[p][i].x + t[p][i].y * t[p][i].y;
    }
    reinterpret_cast<Pack*>(a.res_out + row)[at] = out;
  }
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = sums[threadIdx.x % (kThreads / 32)];
  for (int half = kThreads / 64; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  const float scale = rsqrtf(sum / float(a.C) + a.eps);
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int at = p * kThreads + int(threadIdx.x);
    if (at >= count) break;
    const Pack weight = w[at];
    Pack out;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) {
      const float2 g = __bfloat1622float2(weight.pair[i]);
      out.pair[i] = __float22bfloat162_rn(make_float2(t[p][i].x * scale * g.x, t[p][i].y * scale * g.y));
    }
    reinterpret_cast<Pack*>(a.y + row)[at] = out;
  }
}

// Any row length.
__global__ void rows_of_any_length(const kbench_args a) {
  __shared__ float sums[kThreads / 32];
  const long long row = blockIdx.x * a.C;
  float sum = 0;
  for (long long i = row + threadIdx.x; i < row + a.C; i += blockDim.x) {
    const float t = float(a.x[i]) + float(a.res[i]);
    sum += t * t;
  }
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (float one : sums) sum += one;
  const float scale = rsqrtf(sum / float(a.C) + a.eps);
  for (long long i = row + threadIdx.x; i < row + a.C; i += blockDim.x) {
    const float t = float(a.x[i]) + float(a.res[i]);
    a.res_out[i] = kb::bf16(t);
    a.y[i] = kb::bf16(t * scale * float(a.w[i - row]));
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const unsigned blocks = unsigned(args->M);
  const long long packs = (args->C / kWidth + kThreads - 1) / kThreads;
  if (args->C % kWidth != 0 || packs > 4)
    rows_of_any_length<<<blocks, kThreads, 0, stream>>>(*args);
  else if (packs == 1)
    rows<1><<<blocks, kThreads, 0, stream>>>(*args);
  else if (packs == 2)
    rows<2><<<blocks, kThreads, 0, stream>>>(*args);
  else
    rows<4><<<blocks, kThreads, 0, stream>>>(*args);
  return cudaGetLastError();
}
