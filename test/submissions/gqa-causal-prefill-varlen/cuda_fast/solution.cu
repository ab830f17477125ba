// Flash attention on bf16 tensor cores by mma.sync: 64 queries of one head a block, tiles of 64 keys, the next tile on
// its way while one is computed. Blocks with most keys start first. For D = 128; other sizes take a plain kernel.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "task.h"

namespace {

constexpr int kTile = 64, kD = 128, kThreads = 128, kTileBytes = kTile * kD * 2;
constexpr int kSharedBytes = 5 * kTileBytes;  // Q; two of K and V

// Rows of 256 bytes are sixteen chunks of 16, swizzled by the row.
__device__ __forceinline__ std::uint32_t place(int row, int chunk) {
  return row * (kD * 2) + ((chunk ^ (row & 7)) << 4);
}

__device__ __forceinline__ void copy16(std::uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
}
__device__ __forceinline__ void load4(std::uint32_t (&r)[4], std::uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from));
}
__device__ __forceinline__ void load4_transposed(std::uint32_t (&r)[4], std::uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from));
}
__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ std::uint32_t pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

// 64 rows of one head, from row `first` of a sequence that has `rows` left.
__device__ __forceinline__ void fetch(std::uint32_t to, const kb::bf16* from, long long stride, long long rows) {
#pragma unroll
  for (int i = 0; i < kTile * 16 / kThreads; ++i) {
    const int at = i * kThreads + threadIdx.x, row = at / 16, chunk = at % 16;
    const bool inside = row < rows;
    copy16(to + place(row, chunk), from + (inside ? row : 0) * stride + chunk * 8, inside);
  }
}

__global__ void __launch_bounds__(kThreads, 2) tiles(const kbench_args a) {
  extern __shared__ __align__(128) unsigned char shared[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long h = blockIdx.x, hk = h / (a.HQ / a.HK), kv_stride = a.HK * kD;

  // Which 64 queries: the longest sequence's last ones first.
  long long tile = blockIdx.y, length = a.NS * a.U;
  while (tile >= (length + kTile - 1) / kTile) tile -= (length + kTile - 1) / kTile, length -= a.U;
  tile = (length + kTile - 1) / kTile - 1 - tile;
  long long n = 0;
  while (a.cu[n + 1] - a.cu[n] != length) ++n;
  const long long begin = a.cu[n], q0 = tile * kTile;

  const kb::bf16* keys = a.k + begin * kv_stride + hk * kD;
  const kb::bf16* values = a.v + begin * kv_stride + hk * kD;
  const auto fetch_tile = [&](long long k) {
    const std::uint32_t to = base + kTileBytes * (1 + 2 * (k & 1));
    fetch(to, keys + k * kTile * kv_stride, kv_stride, length - k * kTile);
    fetch(to + kTileBytes, values + k * kTile * kv_stride, kv_stride, length - k * kTile);
    asm volatile("cp.async.commit_group;");
  };
  fetch(base, a.q + ((begin + q0) * a.HQ + h) * kD, a.HQ * kD, length - q0);
  fetch_tile(0);

  std::uint32_t q[kD / 16][4];
  float out[kD / 8][4] = {};
  float top[2] = {-INFINITY, -INFINITY}, weight[2] = {0, 0};
  const float scale = 1.4426950408889634f / sqrtf(float(kD));

  for (long long k = 0; k <= tile; ++k) {
    if (k < tile) {
      fetch_tile(k + 1);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    if (k == 0) {
#pragma unroll
      for (int d = 0; d < kD / 16; ++d) load4(q[d], base + place(warp * 16 + lane % 16, d * 2 + lane / 16));
    }
    const std::uint32_t k_shared = base + kTileBytes * (1 + 2 * (k & 1)), v_shared = k_shared + kTileBytes;

    float p[kTile / 8][4] = {};
#pragma unroll
    for (int d = 0; d < kD / 16; ++d)
#pragma unroll
      for (int j = 0; j < kTile / 16; ++j) {
        std::uint32_t b[4];
        load4(b, k_shared + place(j * 16 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
        multiply(p[2 * j], q[d], b[0], b[1]);
        multiply(p[2 * j + 1], q[d], b[2], b[3]);
      }

    if (k == tile) {  // the diagonal: keys up to the query's own
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (j * 8 + lane % 4 * 2 + e % 2 > warp * 16 + lane / 4 + e / 2 * 8) p[j][e] = -INFINITY;
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float higher = top[r];
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) higher = fmaxf(higher, fmaxf(p[j][2 * r], p[j][2 * r + 1]));
      higher = fmaxf(higher, __shfl_xor_sync(~0u, higher, 1));
      higher = fmaxf(higher, __shfl_xor_sync(~0u, higher, 2));
      const float shrink = exp2_fast((top[r] - higher) * scale), offset = higher * scale;
      top[r] = higher;
      weight[r] *= shrink;
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) {
        p[j][2 * r] = exp2_fast(p[j][2 * r] * scale - offset);
        p[j][2 * r + 1] = exp2_fast(p[j][2 * r + 1] * scale - offset);
        weight[r] += p[j][2 * r] + p[j][2 * r + 1];
      }
#pragma unroll
      for (int d = 0; d < kD / 8; ++d) out[d][2 * r] *= shrink, out[d][2 * r + 1] *= shrink;
    }
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      const std::uint32_t left[4] = {pair(p[2 * j][0], p[2 * j][1]), pair(p[2 * j][2], p[2 * j][3]),
                                     pair(p[2 * j + 1][0], p[2 * j + 1][1]), pair(p[2 * j + 1][2], p[2 * j + 1][3])};
#pragma unroll
      for (int d = 0; d < kD / 16; ++d) {
        std::uint32_t b[4];
        load4_transposed(b, v_shared + place(j * 16 + lane % 16, d * 2 + lane / 16));
        multiply(out[2 * d], left, b[0], b[1]);
        multiply(out[2 * d + 1], left, b[2], b[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    weight[r] += __shfl_xor_sync(~0u, weight[r], 1);
    weight[r] += __shfl_xor_sync(~0u, weight[r], 2);
    const long long row = q0 + warp * 16 + lane / 4 + 8 * r;
    if (row >= length) continue;
    const long long at = (begin + row) * a.HQ + h;
    const float inverse = 1 / weight[r];
#pragma unroll
    for (int d = 0; d < kD / 8; ++d)
      *reinterpret_cast<std::uint32_t*>(a.o + at * kD + d * 8 + lane % 4 * 2) =
          pair(out[d][2 * r] * inverse, out[d][2 * r + 1] * inverse);
    if (lane % 4 == 0) a.lse[at] = top[r] / sqrtf(float(kD)) + logf(weight[r]);
  }
}

constexpr int kEach = 8;

__global__ void queries(const kbench_args a) {
  const long long i = (blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x) / 32;
  if (i >= a.TT * a.HQ) return;
  const int lane = threadIdx.x % 32;
  const long long t = i / a.HQ, h = i % a.HQ, hk = h / (a.HQ / a.HK), D = a.D;
  long long n = 0;
  while (t >= a.cu[n + 1]) ++n;
  float q[kEach], sum[kEach] = {};
  for (int e = 0; e < kEach; ++e) q[e] = lane + 32 * e < D ? float(a.q[i * D + lane + 32 * e]) : 0;
  float top = -INFINITY, weight = 0;
  for (long long s = a.cu[n]; s <= t; ++s) {
    const long long at = (s * a.HK + hk) * D + lane;
    float p = 0;
    for (int e = 0; e < kEach; ++e)
      if (lane + 32 * e < D) p += q[e] * float(a.k[at + 32 * e]);
    for (int half = 16; half > 0; half /= 2) p += __shfl_xor_sync(~0u, p, half);
    p *= rsqrtf(float(D));
    const float higher = fmaxf(top, p), shrink = expf(top - higher), now = expf(p - higher);
    top = higher;
    weight = weight * shrink + now;
    for (int e = 0; e < kEach; ++e)
      if (lane + 32 * e < D) sum[e] = sum[e] * shrink + now * float(a.v[at + 32 * e]);
  }
  for (int e = 0; e < kEach; ++e)
    if (lane + 32 * e < D) a.o[i * D + lane + 32 * e] = kb::bf16(sum[e] / weight);
  if (lane == 0) a.lse[i] = top + logf(weight);
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  if (args->D != kD) {
    queries<<<unsigned((args->TT * args->HQ + 3) / 4), 128, 0, stream>>>(*args);
    return cudaGetLastError();
  }
  static const cudaError_t ready =
      cudaFuncSetAttribute(tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (ready != cudaSuccess) return ready;
  unsigned blocks = 0;
  for (long long j = 1; j <= args->NS; ++j) blocks += unsigned((j * args->U + kTile - 1) / kTile);
  tiles<<<dim3(unsigned(args->HQ), blocks), kThreads, kSharedBytes, stream>>>(*args);
  return cudaGetLastError();
}
