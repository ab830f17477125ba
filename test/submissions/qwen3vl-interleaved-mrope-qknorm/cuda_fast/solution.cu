// A block eight neighbouring tokens. Their angles' cosines and sines are computed once for all heads; then eight
// threads take a head in place, each a pack of 16 bytes of its first half and the one of its second half that is
// rotated against it.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256, kTokens = 8, kD = 128, kWidth = 8, kLanes = kD / 2 / kWidth;

struct alignas(16) Pack {
  __nv_bfloat16 of[kWidth];
};

__device__ float2 turn_of(const kbench_args& a, long long n, int i) {
  const int axis = i % 3 == 1 && i < 3 * a.s1 ? 1 : i % 3 == 2 && i < 3 * a.s2 ? 2 : 0;
  float c, s;
  sincosf(float(a.pos[axis * a.N + n]) * a.inv[i], &s, &c);
  return make_float2(c, s);
}

__global__ void __launch_bounds__(kThreads) tokens(const kbench_args a) {
  __shared__ float2 turns[kTokens][kD / 2];  // cosine and sine
  const long long first = blockIdx.x * static_cast<long long>(kTokens);
  for (int i = threadIdx.x; i < kTokens * kD / 2; i += kThreads) {
    const long long n = first + i / (kD / 2);
    if (n < a.N) turns[i / (kD / 2)][i % (kD / 2)] = turn_of(a, n, i % (kD / 2));
  }
  __syncthreads();
  const int part = threadIdx.x % kLanes, Hq = int(a.Hq), heads = int(a.Hq + a.Hk);
  const int present = a.N - first < kTokens ? int(a.N - first) : kTokens;
#pragma unroll 2
  for (int at = threadIdx.x / kLanes; at < (present * heads + 3) / 4 * 4; at += kThreads / kLanes) {
    const bool inside = at < present * heads;  // the other threads of a warp stay for its sums
    const int t = inside ? at / heads : 0, h = inside ? at % heads : 0;
    const bool is_q = h < Hq;
    Pack* x =
        reinterpret_cast<Pack*>(is_q ? a.q + ((first + t) * Hq + h) * kD : a.k + ((first + t) * a.Hk + h - Hq) * kD) +
        part;
    Pack low = x[0], high = x[kLanes];
    const float* g = (is_q ? a.gq : a.gk) + part * kWidth;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float l = __bfloat162float(low.of[i]), r = __bfloat162float(high.of[i]);
      sum += l * l + r * r;
    }
#pragma unroll
    for (int half = kLanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
    const float inverse = 1 / sqrtf(sum / kD + a.eps);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float2 turn = turns[t][part * kWidth + i];
      const float l = __bfloat162float(low.of[i]) * inverse * g[i];
      const float r = __bfloat162float(high.of[i]) * inverse * g[kD / 2 + i];
      low.of[i] = __float2bfloat16_rn(l * turn.x - r * turn.y);
      high.of[i] = __float2bfloat16_rn(r * turn.x + l * turn.y);
    }
    if (!inside) continue;
    x[0] = low;
    x[kLanes] = high;
  }
}

// Any even D: a thread a head.
__global__ void __launch_bounds__(kThreads) heads(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x, all = a.Hq + a.Hk;
  if (i >= a.N * all) return;
  const long long n = i / all, h = i % all;
  const int half = int(a.D / 2);
  kb::bf16* x = h < a.Hq ? a.q + (n * a.Hq + h) * a.D : a.k + (n * a.Hk + h - a.Hq) * a.D;
  const float* g = h < a.Hq ? a.gq : a.gk;
  float sum = 0;
  for (int d = 0; d < a.D; ++d) sum += float(x[d]) * float(x[d]);
  const float inverse = 1 / sqrtf(sum / float(a.D) + a.eps);
  for (int d = 0; d < half; ++d) {
    const float2 turn = turn_of(a, n, d);
    const float l = float(x[d]) * inverse * g[d], r = float(x[d + half]) * inverse * g[d + half];
    x[d] = kb::bf16(l * turn.x - r * turn.y);
    x[d + half] = kb::bf16(r * turn.x + l * turn.y);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const kbench_args& a = *args;
  if (a.D == kD)
    tokens<<<unsigned((a.N + kTokens - 1) / kTokens), kThreads, 0, stream>>>(a);
  else
    heads<<<unsigned((a.N * (a.Hq + a.Hk) + kThreads - 1) / kThreads), kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}
