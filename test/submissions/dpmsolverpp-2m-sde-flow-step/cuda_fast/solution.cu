// The coefficients of a sample once, in a kernel of their own; then a thread eight neighbouring elements, 96 bytes on
// their way at once.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256, kEach = 8;

struct Step {
  float s, inverse_r0, of_x, of_m0, of_D1, of_noise;
};

__global__ void steps_of(const kbench_args a, Step* steps) {
  const long long b = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (b >= a.B) return;
  const double sp = a.sig[b * 3], s = a.sig[b * 3 + 1], sn = a.sig[b * 3 + 2];
  const double before = log((1 - sp) / sp), here = log((1 - s) / s), next = log((1 - sn) / sn);
  const double h = next - here, gain = -expm1(-2 * h);
  steps[b] = {float(s),
              float(h / (here - before)),
              float(sn / s * exp(-h)),
              float((1 - sn) * gain),
              float(0.5 * (1 - sn) * gain),
              float(sn * sqrt(gain))};
}

__device__ __forceinline__ void update(const Step& step, float& x, float& m1, float v, float nz) {
  const float m0 = x - step.s * v, D1 = (m0 - m1) * step.inverse_r0;
  x = step.of_x * x + step.of_m0 * m0 + step.of_D1 * D1 + step.of_noise * nz;
  m1 = m0;
}

__global__ void __launch_bounds__(kThreads) elements(const kbench_args a, const Step* steps) {
  const long long i = (blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x) * kEach;  // of the sample
  if (i >= a.M) return;
  const long long at = blockIdx.y * a.M + i;
  float4* x = reinterpret_cast<float4*>(a.x + at);
  float4* m1 = reinterpret_cast<float4*>(a.m1 + at);
  alignas(16) float xs[kEach], ms[kEach];
  alignas(16) __nv_bfloat16 v[kEach], nz[kEach];
  reinterpret_cast<float4*>(xs)[0] = x[0];
  reinterpret_cast<float4*>(xs)[1] = x[1];
  reinterpret_cast<float4*>(ms)[0] = m1[0];
  reinterpret_cast<float4*>(ms)[1] = m1[1];
  *reinterpret_cast<uint4*>(v) = *reinterpret_cast<const uint4*>(a.v + at);
  *reinterpret_cast<uint4*>(nz) = *reinterpret_cast<const uint4*>(a.nz + at);
  const Step step = steps[blockIdx.y];
#pragma unroll
  for (int e = 0; e < kEach; ++e) update(step, xs[e], ms[e], __bfloat162float(v[e]), __bfloat162float(nz[e]));
  x[0] = reinterpret_cast<float4*>(xs)[0];
  x[1] = reinterpret_cast<float4*>(xs)[1];
  m1[0] = reinterpret_cast<float4*>(ms)[0];
  m1[1] = reinterpret_cast<float4*>(ms)[1];
}

// Any length of a sample.
__global__ void __launch_bounds__(kThreads) elements_of_any_length(const kbench_args a, const Step* steps) {
  const long long i = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x;
  if (i >= a.M) return;
  const long long at = blockIdx.y * a.M + i;
  update(steps[blockIdx.y], a.x[at], a.m1[at], float(a.v[at]), float(a.nz[at]));
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  static Step* steps = nullptr;
  static long long room = 0;
  const auto stream = static_cast<cudaStream_t>(stream_);
  const long long B = args->B, M = args->M;
  if (B > 65535) return 1;
  if (B > room) {
    if (cudaMalloc(&steps, sizeof(Step) * B) != cudaSuccess) return 1;
    room = B;
  }
  steps_of<<<unsigned((B + 31) / 32), 32, 0, stream>>>(*args, steps);
  if (M % kEach == 0) {
    const long long blocks = (M / kEach + kThreads - 1) / kThreads;
    elements<<<dim3(unsigned(blocks), unsigned(B)), kThreads, 0, stream>>>(*args, steps);
  } else {
    const long long blocks = (M + kThreads - 1) / kThreads;
    elements_of_any_length<<<dim3(unsigned(blocks), unsigned(B)), kThreads, 0, stream>>>(*args, steps);
  }
  return cudaGetLastError();
}
