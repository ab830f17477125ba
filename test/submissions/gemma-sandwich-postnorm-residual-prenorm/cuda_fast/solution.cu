// A block a row, a thread eight neighbouring channels at a time, up to three times: the row stays in registers through
// both norms, every byte is moved once.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kWidth = 8, kPacks = 3;  // elements a thread loads at a time; times at most

struct alignas(16) Pack {
  __nv_bfloat16 of[kWidth];
};

// The block's sum of `sum`. `sums` is not used again before the next two barriers.
__device__ __forceinline__ float over_block(float sum, float* sums) {
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += sums[warp];
  return sum;
}

template <int packs>
__global__ void __launch_bounds__(256) rows(const kbench_args a) {
  __shared__ float sums[2][8];
  const long long row = blockIdx.x * a.C;
  const int count = int(a.C / kWidth);
  const Pack* x = reinterpret_cast<const Pack*>(a.x + row);
  const Pack* res = reinterpret_cast<const Pack*>(a.res + row);
  const Pack* w1 = reinterpret_cast<const Pack*>(a.w1);
  const Pack* w2 = reinterpret_cast<const Pack*>(a.w2);
  Pack branch[packs], stream[packs];
  float sum = 0;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int at = p * int(blockDim.x) + int(threadIdx.x);
    if (at >= count) continue;
    branch[p] = x[at];
    stream[p] = res[at];
  }
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    if (p * int(blockDim.x) + int(threadIdx.x) >= count) continue;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) sum += __bfloat162float(branch[p].of[e]) * __bfloat162float(branch[p].of[e]);
  }
  float inverse = 1 / sqrtf(over_block(sum, sums[0]) / float(a.C) + a.eps);
  sum = 0;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int at = p * int(blockDim.x) + int(threadIdx.x);
    if (at >= count) continue;
    const Pack weight = w1[at];
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const float normed = __bfloat162float(branch[p].of[e]) * inverse * (1 + __bfloat162float(weight.of[e]));
      stream[p].of[e] =
          __float2bfloat16_rn(__bfloat162float(stream[p].of[e]) + __bfloat162float(__float2bfloat16_rn(normed)));
      sum += __bfloat162float(stream[p].of[e]) * __bfloat162float(stream[p].of[e]);
    }
    reinterpret_cast<Pack*>(a.h + row)[at] = stream[p];
  }
  inverse = 1 / sqrtf(over_block(sum, sums[1]) / float(a.C) + a.eps);
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int at = p * int(blockDim.x) + int(threadIdx.x);
    if (at >= count) continue;
    const Pack weight = w2[at];
    Pack out;
#pragma unroll
    for (int e = 0; e < kWidth; ++e)
      out.of[e] =
          __float2bfloat16_rn(__bfloat162float(stream[p].of[e]) * inverse * (1 + __bfloat162float(weight.of[e])));
    reinterpret_cast<Pack*>(a.y + row)[at] = out;
  }
}

// Any row length.
__global__ void __launch_bounds__(256) rows_of_any_length(const kbench_args a) {
  __shared__ float sums[2][8];
  const long long row = blockIdx.x * a.C;
  float sum = 0;
  for (long long c = threadIdx.x; c < a.C; c += blockDim.x) sum += float(a.x[row + c]) * float(a.x[row + c]);
  float inverse = 1 / sqrtf(over_block(sum, sums[0]) / float(a.C) + a.eps);
  sum = 0;
  for (long long c = threadIdx.x; c < a.C; c += blockDim.x) {
    const kb::bf16 normed(float(a.x[row + c]) * inverse * (1 + float(a.w1[c])));
    const kb::bf16 stream(float(a.res[row + c]) + float(normed));
    a.h[row + c] = stream;
    sum += float(stream) * float(stream);
  }
  inverse = 1 / sqrtf(over_block(sum, sums[1]) / float(a.C) + a.eps);
  for (long long c = threadIdx.x; c < a.C; c += blockDim.x)
    a.y[row + c] = kb::bf16(float(a.h[row + c]) * inverse * (1 + float(a.w2[c])));
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const unsigned blocks = unsigned(args->M);
  const long long packs = args->C / kWidth;
  if (args->C % kWidth != 0 || packs > kPacks * 256) {
    rows_of_any_length<<<blocks, 256, 0, stream>>>(*args);
  } else {
    const unsigned threads = unsigned(((packs + kPacks - 1) / kPacks + 31) / 32 * 32);
    rows<kPacks><<<blocks, threads, 0, stream>>>(*args);
  }
  return cudaGetLastError();
}
