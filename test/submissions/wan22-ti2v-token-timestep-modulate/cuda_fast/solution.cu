// A block eight neighbouring tokens, one after the other, the next one's load under way; a thread eight channels, whose
// shift and scale it keeps for as long as the timestep stays the same.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kWidth = 8, kTokens = 8, kThreadsMax = 512;

struct alignas(16) Pack {
  __nv_bfloat16 of[kWidth];
};
struct Eight {
  float of[kWidth];
};

__device__ __forceinline__ Eight sum_of(const float* left, const float* right) {
  Eight sum;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float4 l = reinterpret_cast<const float4*>(left)[half], r = reinterpret_cast<const float4*>(right)[half];
    sum.of[half * 4] = l.x + r.x;
    sum.of[half * 4 + 1] = l.y + r.y;
    sum.of[half * 4 + 2] = l.z + r.z;
    sum.of[half * 4 + 3] = l.w + r.w;
  }
  return sum;
}

__device__ __forceinline__ float over_block(float sum, float* sums) {
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += sums[warp];
  return sum;
}

__global__ void __launch_bounds__(kThreadsMax) tokens(const kbench_args a) {
  __shared__ float sums[2][kThreadsMax / 32];  // in turns: each is free again after the other's barrier
  const long long N = a.GF * a.S, rows = a.B * N, first = blockIdx.x * static_cast<long long>(kTokens);
  const int C = int(a.C), c = int(threadIdx.x) * kWidth;
  const bool inside = c < C;
  Eight shift{}, scale{};
  long long held = -1;  // the embedding that they are of
  Pack coming{};
  if (inside) coming = *reinterpret_cast<const Pack*>(a.x + first * C + c);
#pragma unroll 1
  for (long long n = first; n < first + kTokens && n < rows; ++n) {
    const Pack pack = coming;
    if (inside && n + 1 < first + kTokens && n + 1 < rows)
      coming = *reinterpret_cast<const Pack*>(a.x + (n + 1) * C + c);
    const long long embedding = n / N * a.U + a.tidx[n];
    if (inside && embedding != held) {
      const float* e = a.e + embedding * 6 * C + c;
      shift = sum_of(a.table + c, e);
      scale = sum_of(a.table + C + c, e + C);
      held = embedding;
    }
    float x[kWidth], sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      x[i] = inside ? __bfloat162float(pack.of[i]) : 0.0f;
      sum += x[i];
    }
    const float mean = over_block(sum, sums[0]) / float(C);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      x[i] = inside ? x[i] - mean : 0.0f;
      squares += x[i] * x[i];
    }
    const float inverse = 1 / sqrtf(over_block(squares, sums[1]) / float(C) + a.eps);
    Pack out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out.of[i] = __float2bfloat16_rn(x[i] * inverse * (1 + scale.of[i]) + shift.of[i]);
    if (inside) *reinterpret_cast<Pack*>(a.y + n * C + c) = out;
  }
}

// Any number of channels.
__global__ void __launch_bounds__(kThreadsMax) tokens_of_any_width(const kbench_args a) {
  __shared__ float sums[2][kThreadsMax / 32];
  const long long n = blockIdx.x, C = a.C, N = a.GF * a.S;
  const float* e = a.e + (n / N * a.U + a.tidx[n]) * 6 * C;
  float sum = 0;
  for (long long c = threadIdx.x; c < C; c += blockDim.x) sum += float(a.x[n * C + c]);
  const float mean = over_block(sum, sums[0]) / float(C);
  sum = 0;
  for (long long c = threadIdx.x; c < C; c += blockDim.x) {
    const float t = float(a.x[n * C + c]) - mean;
    sum += t * t;
  }
  const float inverse = 1 / sqrtf(over_block(sum, sums[1]) / float(C) + a.eps);
  for (long long c = threadIdx.x; c < C; c += blockDim.x) {
    const float shift = a.table[c] + e[c], scale = a.table[C + c] + e[C + c];
    a.y[n * C + c] = kb::bf16((float(a.x[n * C + c]) - mean) * inverse * (1 + scale) + shift);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const long long rows = args->B * args->GF * args->S;
  if (args->C % kWidth == 0 && args->C / kWidth <= kThreadsMax) {
    const unsigned threads = unsigned((args->C / kWidth + 31) / 32 * 32);
    tokens<<<unsigned((rows + kTokens - 1) / kTokens), threads, 0, stream>>>(*args);
  } else {
    tokens_of_any_width<<<unsigned(rows), 256, 0, stream>>>(*args);
  }
  return cudaGetLastError();
}
