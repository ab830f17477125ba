// A block four neighbouring tokens. Their angles' cosines and sines are computed once for all heads; then eight threads
// take a head of a token, q, k and v together, in 16 bytes each. Four tokens of a head are neighbours in the results.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256, kTokens = 4, kD8 = 8, kD = 8 * kD8, kWidth = 8, kLanes = kD / kWidth;

struct alignas(16) Pack {
  __nv_bfloat16 of[kWidth];
};

// Of pair p of video token n.
__device__ float angle_of(const kbench_args& a, long long n, int p) {
  const int D8 = int(a.D8), temporal = D8, spatial = 3 * D8 / 2;
  const bool is_frame = p < temporal, is_row = !is_frame && p < temporal + spatial;
  const long long at = is_frame ? n / (a.GW * a.GH) : is_row ? n / a.GW % a.GH : n % a.GW;
  const int j = is_frame ? p : is_row ? p - temporal : p - temporal - spatial;
  return float(at) * powf(a.theta, float(-2 * j) / float((is_frame ? 2 : 3) * D8));
}

// The sum over the eight threads of a head.
__device__ __forceinline__ float over_head(float sum) {
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  return sum;
}

__device__ __forceinline__ Pack norm_and_rotate(const Pack& from, const Pack& w, const Pack& bias, const float2* turn,
                                                float eps) {
  float x[kWidth], sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) x[i] = __bfloat162float(from.of[i]), sum += x[i];
  const float mean = over_head(sum) / kD;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) x[i] -= mean, squares += x[i] * x[i];
  const float inverse = 1 / sqrtf(over_head(squares) / kD + eps);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) x[i] = x[i] * inverse * __bfloat162float(w.of[i]) + __bfloat162float(bias.of[i]);
  Pack to;
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {
    const float even = x[2 * i], odd = x[2 * i + 1];
    to.of[2 * i] = __float2bfloat16_rn(even * turn[i].x - odd * turn[i].y);
    to.of[2 * i + 1] = __float2bfloat16_rn(even * turn[i].y + odd * turn[i].x);
  }
  return to;
}

__global__ void __launch_bounds__(kThreads, 3) tokens(const kbench_args a) {
  __shared__ float2 turns[kTokens][kD / 2];  // cosine and sine
  const long long N = a.T + a.GF * a.GH * a.GW, groups = (N + kTokens - 1) / kTokens;
  const long long b = blockIdx.x / groups, first = blockIdx.x % groups * kTokens;
  const int H = int(a.H);
  for (int i = threadIdx.x; i < kTokens * kD / 2; i += kThreads) {
    const long long token = first + i / (kD / 2);
    float c = 1, s = 0;
    if (token >= a.T && token < N) sincosf(angle_of(a, token - a.T, i % (kD / 2)), &s, &c);
    turns[i / (kD / 2)][i % (kD / 2)] = make_float2(c, s);
  }
  __syncthreads();
  const int part = threadIdx.x % kLanes, t = threadIdx.x / kLanes % kTokens;
  const Pack wq = reinterpret_cast<const Pack*>(a.wq)[part], cq = reinterpret_cast<const Pack*>(a.cq)[part];
  const Pack wk = reinterpret_cast<const Pack*>(a.wk)[part], ck = reinterpret_cast<const Pack*>(a.ck)[part];
  float2 turn[kWidth / 2];
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) turn[i] = turns[t][part * (kWidth / 2) + i];
  const bool inside = first + t < N;
  const long long token = inside ? first + t : N - 1;  // all threads of a warp stay for its sums
  const Pack* from = reinterpret_cast<const Pack*>(a.qkv + (b * N + token) * 3 * H * kD) + part;
  constexpr int kStep = kThreads / (kLanes * kTokens);  // heads at a time
  const int warp_head = threadIdx.x / (kLanes * kTokens);
#pragma unroll 2
  for (int h = warp_head; h < H; h += kStep) {
    const Pack query = from[h * kLanes], key = from[(H + h) * kLanes], value = from[(2 * H + h) * kLanes];
    const Pack q = norm_and_rotate(query, wq, cq, turn, a.eps), k = norm_and_rotate(key, wk, ck, turn, a.eps);
    if (!inside) continue;
    const long long to = ((b * H + h) * N + token) * kLanes + part;
    reinterpret_cast<Pack*>(a.q)[to] = q;
    reinterpret_cast<Pack*>(a.k)[to] = k;
    reinterpret_cast<Pack*>(a.v)[to] = value;
  }
}

__device__ void norm_and_rotate_any(const kbench_args& a, long long token, const kb::bf16* x, const kb::bf16* w,
                                    const kb::bf16* bias, kb::bf16* to) {
  const int D = int(8 * a.D8);
  float mean = 0, squares = 0;
  for (int d = 0; d < D; ++d) mean += float(x[d]);
  mean /= float(D);
  for (int d = 0; d < D; ++d) squares += (float(x[d]) - mean) * (float(x[d]) - mean);
  const float deviation = sqrtf(squares / float(D) + a.eps);
  for (int p = 0; p < D / 2; ++p) {
    const float even = (float(x[2 * p]) - mean) / deviation * float(w[2 * p]) + float(bias[2 * p]);
    const float odd = (float(x[2 * p + 1]) - mean) / deviation * float(w[2 * p + 1]) + float(bias[2 * p + 1]);
    float c = 1, s = 0;
    if (token >= a.T) sincosf(angle_of(a, token - a.T, p), &s, &c);
    to[2 * p] = kb::bf16(even * c - odd * s);
    to[2 * p + 1] = kb::bf16(even * s + odd * c);
  }
}

// Any number of channels.
__global__ void __launch_bounds__(kThreads) heads(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x;
  const long long N = a.T + a.GF * a.GH * a.GW, D = 8 * a.D8;
  if (i >= a.B * N * a.H) return;
  const long long h = i % a.H, token = i / a.H % N, b = i / (a.H * N);
  const kb::bf16* x = a.qkv + ((b * N + token) * 3 * a.H + h) * D;
  const long long to = ((b * a.H + h) * N + token) * D;
  norm_and_rotate_any(a, token, x, a.wq, a.cq, a.q + to);
  norm_and_rotate_any(a, token, x + a.H * D, a.wk, a.ck, a.k + to);
  for (long long d = 0; d < D; ++d) a.v[to + d] = x[2 * a.H * D + d];
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const kbench_args& a = *args;
  const long long N = a.T + a.GF * a.GH * a.GW;
  if (a.D8 == kD8)
    tokens<<<unsigned(a.B * ((N + kTokens - 1) / kTokens)), kThreads, 0, stream>>>(a);
  else
    heads<<<unsigned((a.B * N * a.H + kThreads - 1) / kThreads), kThreads, 0, stream>>>(a);
  return cudaGetLastError();
}
