// A thread a channel with the next tokens' numbers already on their way: what a step depends on is short (a maximum and
// a multiply-add), so that enough loads in flight are all that is needed. Exponents are of 2; num, den and sigmoid
// share one division.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 64, kAhead = 16;  // tokens loaded together
constexpr float kLog2E = 1.4426950408889634f;

struct State {
  float num, den, top;
};

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ __nv_bfloat16 step(State& s, float k, float v, float r, float decay, float bonus) {
  k *= kLog2E;
  float higher = fmaxf(s.top, bonus + k);
  float old = exp2_fast(s.top - higher), now = exp2_fast(bonus + k - higher);
  const float y = __fdividef(old * s.num + now * v, (old * s.den + now) * (1 + exp2_fast(-kLog2E * r)));
  const float before = s.top - decay;
  higher = fmaxf(before, k);
  old = exp2_fast(before - higher), now = exp2_fast(k - higher);
  s = {old * s.num + now * v, old * s.den + now, higher};
  return __float2bfloat16_rn(y);
}

__global__ void __launch_bounds__(kThreads) channels(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x;
  if (i >= a.B * a.C) return;
  const long long b = i / a.C, c = i % a.C, stride = a.C, base = b * a.T * a.C + c;
  const __nv_bfloat16* k = reinterpret_cast<const __nv_bfloat16*>(a.k) + base;
  const __nv_bfloat16* v = reinterpret_cast<const __nv_bfloat16*>(a.v) + base;
  const __nv_bfloat16* r = reinterpret_cast<const __nv_bfloat16*>(a.r) + base;
  __nv_bfloat16* y = reinterpret_cast<__nv_bfloat16*>(a.y) + base;
  const float decay = expf(a.w[c]) * kLog2E, bonus = a.u[c] * kLog2E;
  State state{0, 0, -1e38f};
  const long long whole = a.T / kAhead * kAhead;
  __nv_bfloat16 kn[kAhead], vn[kAhead], rn[kAhead];
  const auto load = [&](long long t) {
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      kn[j] = k[(t + j) * stride];
      vn[j] = v[(t + j) * stride];
      rn[j] = r[(t + j) * stride];
    }
  };
  if (whole > 0) load(0);
  for (long long t = 0; t < whole; t += kAhead) {
    float kf[kAhead], vf[kAhead], rf[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j)
      kf[j] = __bfloat162float(kn[j]), vf[j] = __bfloat162float(vn[j]), rf[j] = __bfloat162float(rn[j]);
    if (t + kAhead < whole) load(t + kAhead);
#pragma unroll
    for (int j = 0; j < kAhead; ++j) y[(t + j) * stride] = step(state, kf[j], vf[j], rf[j], decay, bonus);
  }
  for (long long t = whole; t < a.T; ++t)
    y[t * stride] = step(state, __bfloat162float(k[t * stride]), __bfloat162float(v[t * stride]),
                         __bfloat162float(r[t * stride]), decay, bonus);
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  channels<<<unsigned((args->B * args->C + kThreads - 1) / kThreads), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      *args);
  return cudaGetLastError();
}
