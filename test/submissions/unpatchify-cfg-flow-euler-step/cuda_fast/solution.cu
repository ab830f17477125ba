// A block the tokens of one row of patches of one frame, which are neighbours: the guided velocities go to shared
// memory, turned to the latent's order, and from there to two rows of each channel, which are neighbours too. All
// accesses are of 16 bytes.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "task.h"

namespace {

constexpr int kThreads = 256, kWidth = 8;  // channels a thread loads at a time
constexpr long long kSharedMax = 48 << 10;

// Floats of a channel in shared memory: its two rows, and two more against bank conflicts.
__host__ __device__ inline long long pitch_of(const kbench_args& a) { return 2 * a.W + 2; }

__global__ void __launch_bounds__(kThreads) patches(const kbench_args a) {
  extern __shared__ float2 turned[];  // [C, pitch]
  float* velocity = reinterpret_cast<float*>(turned);
  const int C = int(a.C), W = int(a.W), H2 = int(a.H / 2), pitch = int(pitch_of(a));
  const long long line = blockIdx.x, i = line % H2, t = line / H2 % a.T, b = line / H2 / a.T;
  const uint4* vc = reinterpret_cast<const uint4*>(a.vc + line * (W / 2) * 4 * C);
  const uint4* vu = reinterpret_cast<const uint4*>(a.vu + line * (W / 2) * 4 * C);
  const float by = a.sig[b * 2 + 1] - a.sig[b * 2], w = a.w[b];
  const int packs = C / kWidth;  // of a pixel
  for (int p = threadIdx.x; p < W * 2 * packs; p += kThreads) {
    alignas(16) __nv_bfloat16 with[kWidth], without[kWidth];
    *reinterpret_cast<uint4*>(with) = vc[p];
    *reinterpret_cast<uint4*>(without) = vu[p];
    const int c = p % packs * kWidth, pixel = p / packs % 4, j = p / packs / 4;
    float* to = velocity + c * pitch + pixel / 2 * W + 2 * j + pixel % 2;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const float u = __bfloat162float(without[e]);
      to[e * pitch] = by * (u + w * (__bfloat162float(with[e]) - u));
    }
  }
  __syncthreads();
  const int quads = W / 2;  // of a channel: 2 W / 4
  const long long plane = a.H * a.W;
  float* x = a.x + (b * C * a.T + t) * plane + i * 2 * W;
  for (int q = threadIdx.x; q < C * quads; q += kThreads) {
    const int c = q / quads, at = q % quads;
    float4* to = reinterpret_cast<float4*>(x + c * a.T * plane) + at;
    const float2 low = turned[(c * pitch) / 2 + at * 2], high = turned[(c * pitch) / 2 + at * 2 + 1];
    float4 old = *to;
    old.x += low.x;
    old.y += low.y;
    old.z += high.x;
    old.w += high.y;
    *to = old;
  }
}

// Any number of channels, any width.
__global__ void __launch_bounds__(kThreads) elements(const kbench_args a) {
  const long long n = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x;
  if (n >= a.B * a.C * a.T * a.H * a.W) return;
  const long long w = n % a.W, h = n / a.W % a.H, t = n / (a.W * a.H) % a.T, c = n / (a.W * a.H * a.T) % a.C;
  const long long b = n / (a.W * a.H * a.T * a.C);
  const long long token = ((b * a.T + t) * (a.H / 2) + h / 2) * (a.W / 2) + w / 2;
  const long long at = (token * 4 + h % 2 * 2 + w % 2) * a.C + c;
  const float vc = float(a.vc[at]), vu = float(a.vu[at]);
  a.x[n] += (a.sig[b * 2 + 1] - a.sig[b * 2]) * (vu + a.w[b] * (vc - vu));
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const kbench_args& a = *args;
  const long long shared = a.C * pitch_of(a) * 4;
  if (a.C % kWidth == 0 && shared <= kSharedMax) {
    patches<<<unsigned(a.B * a.T * (a.H / 2)), kThreads, std::size_t(shared), stream>>>(a);
  } else {
    const long long blocks = (a.B * a.C * a.T * a.H * a.W + kThreads - 1) / kThreads;
    elements<<<unsigned(blocks), kThreads, 0, stream>>>(a);
  }
  return cudaGetLastError();
}
