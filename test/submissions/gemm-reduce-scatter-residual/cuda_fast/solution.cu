// Reduce-scatter by direct stores: each GPU first computes its product for the rows that the peer keeps and stores it
// in the peer's memory, then, when the peer's has come, its own rows, to which it adds what came and the residual.
// Tensor cores through wmma: 128 x 128 a block, 64 x 32 a warp, three stages of cp.async.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "task.h"

using namespace nvcuda;

namespace {

constexpr int kTile = 128, kDepth = 32, kStages = 3, kThreads = 256;
constexpr int kPitch = kDepth + 8;  // of a row in shared memory: 80 bytes, so that rows lie in different banks
constexpr int kStage = 2 * kTile * kPitch;
constexpr int kSharedBytes = kStages * kStage * 2;
constexpr int kGpus = 2;

struct Product {
  const __nv_bfloat16 *x, *w;  // [rows, K], [N, K]
  long long N, K;
  float* partial;  // [rows, N]: written where `out` is null, else added
  const kb::bf16* res;
  kb::bf16* out;
};

__device__ void fetch(const Product& p, __nv_bfloat16* to, long long m0, long long n0, long long k0) {
  for (int i = threadIdx.x; i < 2 * kTile * kDepth / 8; i += kThreads) {
    const int row = i / (kDepth / 8), part = i % (kDepth / 8) * 8;
    const __nv_bfloat16* from = row < kTile ? p.x + (m0 + row) * p.K : p.w + (n0 + row - kTile) * p.K;
    __pipeline_memcpy_async(to + row * kPitch + part, from + k0 + part, 16);
  }
}

__global__ void __launch_bounds__(kThreads, 1) product(const __grid_constant__ Product p) {
  extern __shared__ __align__(128) __nv_bfloat16 shared[];
  const long long m0 = blockIdx.x * kTile, n0 = blockIdx.y * kTile;  // neighbours share w
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp / 4 * 64, wn = warp % 4 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4][2];
#pragma unroll
  for (auto& row : sums)
#pragma unroll
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  const int steps = static_cast<int>(p.K / kDepth);
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) fetch(p, shared + step * kStage, m0, n0, step * kDepth);
    __pipeline_commit();
  }
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    const int next = step + kStages - 1;
    if (next < steps) fetch(p, shared + next % kStages * kStage, m0, n0, static_cast<long long>(next) * kDepth);
    __pipeline_commit();
    const __nv_bfloat16 *xs = shared + step % kStages * kStage, *ws = xs + kTile * kPitch;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> w[2];
#pragma unroll
      for (int i = 0; i < 4; ++i) wmma::load_matrix_sync(x[i], xs + (wm + 16 * i) * kPitch + k, kPitch);
#pragma unroll
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(w[j], ws + (wn + 16 * j) * kPitch + k, kPitch);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], x[i], w[j], sums[i][j]);
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  // A fragment at a time through a patch of the warp's own: then a lane holds eight neighbours of a row.
  float* patch = reinterpret_cast<float*>(shared) + warp * 256;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(patch, sums[i][j], 16, wmma::mem_row_major);
      __syncwarp();
      const long long m = m0 + wm + 16 * i + lane / 2, n = n0 + wn + 16 * j + lane % 2 * 8, at = m * p.N + n;
      const float4* mine = reinterpret_cast<const float4*>(patch + lane * 8);
      auto* partial = reinterpret_cast<float4*>(p.partial + at);
      if (p.out == nullptr) {
        partial[0] = mine[0];
        partial[1] = mine[1];
      } else {
        union {
          uint4 whole;
          kb::bf16 each[8];
        } res, out;
        res.whole = *reinterpret_cast<const uint4*>(p.res + at);
        for (int e = 0; e < 8; ++e)
          out.each[e] = kb::bf16(patch[lane * 8 + e] + reinterpret_cast<const float*>(partial)[e] + float(res.each[e]));
        *reinterpret_cast<uint4*>(p.out + at) = out.whole;
      }
      __syncwarp();
    }
  }
}

// Sizes that fill no tiles: an element a thread, over both GPUs' operands.
__global__ void element(const kbench_args a, int gpu) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= a.MH * a.N) return;
  const long long m = gpu * a.MH + i / a.N, n = i % a.N;
  float sum = 0;
  for (int of = 0; of < kGpus; ++of)
    for (long long k = 0; k < a.KL; ++k) sum += float(a.x[of][m * a.KL + k]) * float(a.w[of][n * a.KL + k]);
  a.out[gpu][i] = kb::bf16(sum + float(a.res[gpu][i]));
}

struct Exchange {
  float* partial[kGpus] = {};  // on each GPU, what the peer has computed for it
  cudaEvent_t stored[kGpus] = {};
  long long elements = 0;
};

bool make(Exchange& e, long long elements) {
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    cudaSetDevice(gpu);
    if (e.elements == 0) {
      cudaDeviceEnablePeerAccess(1 - gpu, 0);
      cudaGetLastError();  // it may be enabled already
      cudaEventCreateWithFlags(&e.stored[gpu], cudaEventDisableTiming);
      cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    }
    cudaFree(e.partial[gpu]);
    if (cudaMalloc(reinterpret_cast<void**>(&e.partial[gpu]), elements * sizeof(float)) != cudaSuccess) return false;
  }
  e.elements = elements;
  return true;
}

}  // namespace

extern "C" int kbench_run(const kbench_args* a, kbench_stream streams) {
  static Exchange exchange;
  const auto stream = [&](int gpu) { return static_cast<cudaStream_t>(kbench_stream_of(streams, gpu)); };
  if (a->MH % kTile != 0 || a->N % kTile != 0 || a->KL % kDepth != 0) {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      cudaSetDevice(gpu);
      element<<<static_cast<unsigned>((a->MH * a->N + 255) / 256), 256, 0, stream(gpu)>>>(*a, gpu);
    }
    cudaSetDevice(0);
    return static_cast<int>(cudaGetLastError());
  }
  if (a->MH * a->N > exchange.elements && !make(exchange, a->MH * a->N)) return 2;
  const dim3 grid(static_cast<unsigned>(a->MH / kTile), static_cast<unsigned>(a->N / kTile));
  const auto launch = [&](int gpu, int rows_of) {
    const bool own = gpu == rows_of;
    const Product p{reinterpret_cast<const __nv_bfloat16*>(a->x[gpu]) + rows_of * a->MH * a->KL,
                    reinterpret_cast<const __nv_bfloat16*>(a->w[gpu]),
                    a->N,
                    a->KL,
                    exchange.partial[rows_of],
                    a->res[gpu],
                    own ? a->out[gpu] : nullptr};
    product<<<grid, kThreads, kSharedBytes, stream(gpu)>>>(p);
  };
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    cudaSetDevice(gpu);
    launch(gpu, 1 - gpu);
    cudaEventRecord(exchange.stored[gpu], stream(gpu));
  }
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    cudaSetDevice(gpu);
    cudaStreamWaitEvent(stream(gpu), exchange.stored[1 - gpu], 0);
    launch(gpu, gpu);
  }
  cudaSetDevice(0);
  return static_cast<int>(cudaGetLastError());
}
