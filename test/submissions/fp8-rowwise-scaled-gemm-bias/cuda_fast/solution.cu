// FP8 tensor cores by mma.sync, 128 x 256 of C a block, four stages of cp.async. Needs K to be a multiple of 64; else a
// plain kernel.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "task.h"

namespace {

constexpr int kM = 128, kN = 256, kK = 64, kStages = 4, kThreads = 256;
constexpr int kStageBytes = (kM + kN) * kK;
constexpr int kSharedBytes = kStages * kStageBytes;

// Rows of 64 bytes are four chunks of 16; the swizzle puts equal chunks of eight rows into different banks.
__device__ __forceinline__ std::uint32_t place(int row, int chunk) {
  return row * kK + ((chunk ^ (row >> 1 & 3)) << 4);
}

__device__ __forceinline__ void copy16(std::uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
}

__device__ __forceinline__ void load4(std::uint32_t (&r)[4], std::uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from));
}

__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void fetch(const kbench_args& a, long long m0, long long n0, long long k0,
                                      std::uint32_t stage) {
#pragma unroll
  for (int i = 0; i < kM * 4 / kThreads; ++i) {
    const int at = i * kThreads + threadIdx.x, row = at / 4, chunk = at % 4;
    const bool inside = m0 + row < a.M;
    copy16(stage + place(row, chunk), a.A + (inside ? m0 + row : 0) * a.K + k0 + chunk * 16, inside);
  }
#pragma unroll
  for (int i = 0; i < kN * 4 / kThreads; ++i) {
    const int at = i * kThreads + threadIdx.x, row = at / 4, chunk = at % 4;
    const bool inside = n0 + row < a.N;
    copy16(stage + kM * kK + place(row, chunk), a.B + (inside ? n0 + row : 0) * a.K + k0 + chunk * 16, inside);
  }
}

__global__ void __launch_bounds__(kThreads, 1) tensor_tiles(const kbench_args a, int tiles_m) {
  extern __shared__ __align__(128) unsigned char shared[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const long long m0 = blockIdx.x % tiles_m * static_cast<long long>(kM),
                  n0 = blockIdx.x / tiles_m * static_cast<long long>(kN);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, wm = warp % 2 * 64, wn = warp / 2 * 64;
  const int steps = int(a.K / kK);
  float acc[4][8][4] = {};

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) fetch(a, m0, n0, s * static_cast<long long>(kK), base + s * kStageBytes);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2));
    __syncthreads();
    const int next = step + kStages - 1;
    if (next < steps) fetch(a, m0, n0, next * static_cast<long long>(kK), base + next % kStages * kStageBytes);
    asm volatile("cp.async.commit_group;");
    const std::uint32_t left = base + step % kStages * kStageBytes, right = left + kM * kK;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t af[4][4], bf[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)  // rows 0-7 and 8-15 of 16 bytes, then the next 16 bytes
        load4(af[i], left + place(wm + i * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 4; ++j)  // two groups of 8 columns, 16 bytes and the next 16 each
        load4(bf[j], right + place(wn + j * 16 + lane % 8 + lane / 16 * 8, half * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) multiply(acc[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
    }
  }

#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const long long n = n0 + wn + j * 8 + lane % 4 * 2;
    if (n >= a.N) continue;
    const bool both = n + 1 < a.N;
    const float s0 = a.sb[n], s1 = both ? a.sb[n + 1] : 0, b0 = float(a.bias[n]), b1 = both ? float(a.bias[n + 1]) : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const long long m = m0 + wm + i * 16 + h * 8 + lane / 4;
        if (m >= a.M) continue;
        const float sa = a.sa[m];
        const __nv_bfloat162 out =
            __floats2bfloat162_rn(acc[i][j][2 * h] * sa * s0 + b0, acc[i][j][2 * h + 1] * sa * s1 + b1);
        if (both && a.N % 2 == 0) {
          *reinterpret_cast<__nv_bfloat162*>(a.C + m * a.N + n) = out;
        } else {
          reinterpret_cast<__nv_bfloat16*>(a.C)[m * a.N + n] = out.x;
          if (both) reinterpret_cast<__nv_bfloat16*>(a.C)[m * a.N + n + 1] = out.y;
        }
      }
  }
}

__global__ void elements(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= a.M * a.N) return;
  const long long m = i / a.N, n = i % a.N;
  float acc = 0;
  for (long long k = 0; k < a.K; ++k) acc += float(a.A[m * a.K + k]) * float(a.B[n * a.K + k]);
  a.C[i] = kb::bf16(acc * a.sa[m] * a.sb[n] + float(a.bias[n]));
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  if (args->K % kK != 0) {
    elements<<<unsigned((args->M * args->N + 255) / 256), 256, 0, stream>>>(*args);
    return cudaGetLastError();
  }
  static const cudaError_t ready =
      cudaFuncSetAttribute(tensor_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (ready != cudaSuccess) return ready;
  const int tiles_m = int((args->M + kM - 1) / kM), tiles_n = int((args->N + kN - 1) / kN);
  tensor_tiles<<<unsigned(tiles_m * tiles_n), kThreads, kSharedBytes, stream>>>(*args, tiles_m);
  return cudaGetLastError();
}
