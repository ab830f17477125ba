// A block 64 tokens of a sample, one after the other, the next two's loads under way; a thread eight channels, whose
// sums for dsc and dsh stay in registers until the end. The four sums of a token are taken in one pass, behind one
// barrier.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kWidth = 8, kTokens = 64, kThreadsMax = 384, kWarpsMax = kThreadsMax / 32;

struct alignas(16) Pack {
  __nv_bfloat16 of[kWidth];
};
struct Token {
  Pack x, dy;
};

// The block's sum of each of four numbers.
__device__ __forceinline__ float4 over_block(float4 sum, float4* sums) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    sum.x += __shfl_xor_sync(~0u, sum.x, half);
    sum.y += __shfl_xor_sync(~0u, sum.y, half);
    sum.z += __shfl_xor_sync(~0u, sum.z, half);
    sum.w += __shfl_xor_sync(~0u, sum.w, half);
  }
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = make_float4(0, 0, 0, 0);
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) {
    const float4 one = sums[warp];
    sum.x += one.x;
    sum.y += one.y;
    sum.z += one.z;
    sum.w += one.w;
  }
  return sum;
}

struct Row {
  float mean, inverse, of_g, of_gu;
};

// Of the sums of x, x^2, g and g*x.
__device__ __forceinline__ Row row_of(const float4& sum, float C, float eps) {
  const float mean = sum.x / C, inverse = 1 / sqrtf(fmaxf(sum.y / C - mean * mean, 0.0f) + eps);
  return {mean, inverse, sum.z / C, (sum.w - mean * sum.z) * inverse / C};
}

__global__ void __launch_bounds__(kThreadsMax, 2) tokens(const kbench_args a) {
  __shared__ float4 sums[2][kWarpsMax];  // in turns: each is free again after the other's barrier
  const int C = int(a.C), c = int(threadIdx.x) * kWidth;
  const bool inside = c < C;
  const long long b = blockIdx.y, first = blockIdx.x * static_cast<long long>(kTokens);
  const int count = a.N - first < kTokens ? int(a.N - first) : kTokens;
  const long long start = (b * a.N + first) * C + c;
  const auto load = [&](int n) {
    Token token{};
    if (inside && n < count) {
      token.x = *reinterpret_cast<const Pack*>(a.x + start + static_cast<long long>(n) * C);
      token.dy = *reinterpret_cast<const Pack*>(a.dy + start + static_cast<long long>(n) * C);
    }
    return token;
  };
  Token coming = load(0), after = load(1);
  float by[kWidth], of_shift[kWidth] = {}, of_scale[kWidth] = {};
  Pack sc{};
  if (inside) sc = *reinterpret_cast<const Pack*>(a.sc + b * C + c);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) by[i] = 1 + __bfloat162float(sc.of[i]);
#pragma unroll 1
  for (int n = 0; n < count; ++n) {
    const Token token = coming;
    coming = after;
    after = load(n + 2);
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float x = __bfloat162float(token.x.of[i]), g = __bfloat162float(token.dy.of[i]) * by[i];
      sum.x += x;
      sum.y += x * x;
      sum.z += g;
      sum.w += g * x;
    }
    const Row row = row_of(over_block(sum, sums[n % 2]), float(C), a.eps);
    Pack out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float dy = __bfloat162float(token.dy.of[i]);
      const float u = (__bfloat162float(token.x.of[i]) - row.mean) * row.inverse;
      of_shift[i] += dy;
      of_scale[i] += dy * u;
      out.of[i] = __float2bfloat16_rn((dy * by[i] - row.of_g - u * row.of_gu) * row.inverse);
    }
    if (inside) *reinterpret_cast<Pack*>(a.dx + start + static_cast<long long>(n) * C) = out;
  }
  if (!inside) return;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    atomicAdd(a.dsh + b * C + c + i, of_shift[i]);
    atomicAdd(a.dsc + b * C + c + i, of_scale[i]);
  }
}

// Any number of channels: a block a token.
__global__ void __launch_bounds__(kThreadsMax) tokens_of_any_width(const kbench_args a) {
  __shared__ float4 sums[kWarpsMax];
  const long long n = blockIdx.x, C = a.C, b = n / a.N;
  const kb::bf16 *x = a.x + n * C, *dy = a.dy + n * C, *sc = a.sc + b * C;
  float4 sum = make_float4(0, 0, 0, 0);
  for (long long c = threadIdx.x; c < C; c += blockDim.x) {
    const float g = float(dy[c]) * (1 + float(sc[c]));
    sum.x += float(x[c]);
    sum.y += float(x[c]) * float(x[c]);
    sum.z += g;
    sum.w += g * float(x[c]);
  }
  const Row row = row_of(over_block(sum, sums), float(C), a.eps);
  for (long long c = threadIdx.x; c < C; c += blockDim.x) {
    const float u = (float(x[c]) - row.mean) * row.inverse, g = float(dy[c]) * (1 + float(sc[c]));
    a.dx[n * C + c] = kb::bf16((g - row.of_g - u * row.of_gu) * row.inverse);
    atomicAdd(a.dsh + b * C + c, float(dy[c]));
    atomicAdd(a.dsc + b * C + c, float(dy[c]) * u);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const kbench_args& a = *args;
  if (cudaMemsetAsync(a.dsc, 0, sizeof(float) * a.B * a.C, stream) != cudaSuccess ||
      cudaMemsetAsync(a.dsh, 0, sizeof(float) * a.B * a.C, stream) != cudaSuccess)
    return 1;
  if (a.C % kWidth == 0 && a.C / kWidth <= kThreadsMax) {
    const unsigned threads = unsigned((a.C / kWidth + 31) / 32 * 32);
    tokens<<<dim3(unsigned((a.N + kTokens - 1) / kTokens), unsigned(a.B)), threads, 0, stream>>>(a);
  } else {
    tokens_of_any_width<<<unsigned(a.B * a.N), 256, 0, stream>>>(a);
  }
  return cudaGetLastError();
}
