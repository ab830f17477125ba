// A stable counting sort in three small kernels: labels counted by chunks of 1024 tokens, the counts summed up to
// places, and each token's place found by matching labels in a warp. Then the rows are gathered, 16 bytes a thread,
// eight loads under way.
#include <cuda_runtime.h>

#include <cstdint>

#include "task.h"

namespace {

constexpr int kChunk = 1024, kWarps = kChunk / 32;  // tokens of a block of the sort, one a thread
constexpr int kGather = 256, kRows = 4;             // threads of a gathering block; rows of each thread
constexpr long long kLabelsMax = 1024;

// counts[h, chunk, label]
__global__ void __launch_bounds__(kChunk) count(const kbench_args a, std::int32_t* counts, int chunks) {
  extern __shared__ std::int32_t of[];
  const int K = int(a.K), chunk = int(blockIdx.x) % chunks;
  const long long h = blockIdx.x / chunks, n = static_cast<long long>(chunk) * kChunk + threadIdx.x;
  for (int j = threadIdx.x; j < K; j += kChunk) of[j] = 0;
  __syncthreads();
  if (n < a.N) atomicAdd(&of[a.lab[h * a.N + n]], 1);
  __syncthreads();
  for (int j = threadIdx.x; j < K; j += kChunk) counts[static_cast<long long>(blockIdx.x) * K + j] = of[j];
}

// A block a head, a thread a label: off, and counts become the places of each chunk's first token of a label.
__global__ void __launch_bounds__(kLabelsMax) sum_up(const kbench_args a, std::int32_t* counts, int chunks) {
  __shared__ std::int32_t warps[32];
  const int K = int(a.K), j = int(threadIdx.x), lane = j % 32, warp = j / 32;
  std::int32_t* mine = counts + static_cast<long long>(blockIdx.x) * chunks * K + j;
  std::int32_t total = 0;
  if (j < K)
    for (int chunk = 0; chunk < chunks; ++chunk) total += mine[static_cast<long long>(chunk) * K];
  std::int32_t upto = total;  // of the labels up to this one
  for (int by = 1; by < 32; by *= 2) {
    const std::int32_t before = __shfl_up_sync(~0u, upto, by);
    if (lane >= by) upto += before;
  }
  if (lane == 31) warps[warp] = upto;
  __syncthreads();
  for (int w = 0; w < warp; ++w) upto += warps[w];
  if (j >= K) return;
  std::int32_t* off = a.off + static_cast<long long>(blockIdx.x) * (K + 1);
  if (j == 0) off[0] = 0;
  off[j + 1] = upto;
  std::int32_t place = upto - total;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::int32_t& at = mine[static_cast<long long>(chunk) * K];
    const std::int32_t here = at;
    at = place;
    place += here;
  }
}

__global__ void __launch_bounds__(kChunk) place(const kbench_args a, const std::int32_t* places, int chunks) {
  extern __shared__ std::uint16_t before[];  // [warp, label]: tokens of the label in the warp; then in those before it
  const int K = int(a.K), chunk = int(blockIdx.x) % chunks, lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const long long h = blockIdx.x / chunks, n = static_cast<long long>(chunk) * kChunk + threadIdx.x;
  for (int i = threadIdx.x; i < kWarps * K; i += kChunk) before[i] = 0;
  __syncthreads();
  const bool inside = n < a.N;
  const unsigned label = inside ? unsigned(a.lab[h * a.N + n]) : ~0u;
  const unsigned same = __match_any_sync(~0u, label);
  const int rank = __popc(same & ((1u << lane) - 1));
  if (inside && rank == 0) before[warp * K + label] = std::uint16_t(__popc(same));
  __syncthreads();
  for (int j = threadIdx.x; j < K; j += kChunk) {
    int sum = 0;
    for (int w = 0; w < kWarps; ++w) {
      const int here = before[w * K + j];
      before[w * K + j] = std::uint16_t(sum);
      sum += here;
    }
  }
  __syncthreads();
  if (inside)
    a.perm[h * a.N + places[static_cast<long long>(blockIdx.x) * K + label] + before[warp * K + label] + rank] =
        std::int32_t(n);
}

// For rows of a whole number of 16-byte packs: `lanes` of them. A block takes some rows of one head.
__global__ void __launch_bounds__(kGather) gather(const kbench_args a, int lanes) {
  const int part = int(threadIdx.x) % lanes, step = kGather / lanes;
  const long long h = blockIdx.y, first = blockIdx.x * static_cast<long long>(step) * kRows + threadIdx.x / lanes;
  const uint4* k = reinterpret_cast<const uint4*>(a.k) + h * a.N * lanes + part;
  const uint4* v = reinterpret_cast<const uint4*>(a.v) + h * a.N * lanes + part;
  uint4* kp = reinterpret_cast<uint4*>(a.kp) + h * a.N * lanes + part;
  uint4* vp = reinterpret_cast<uint4*>(a.vp) + h * a.N * lanes + part;
  std::int32_t from[kRows];
  uint4 key[kRows], value[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const long long m = first + r * step;
    from[r] = m < a.N ? a.perm[h * a.N + m] : -1;
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (from[r] < 0) continue;
    key[r] = __ldg(k + static_cast<long long>(from[r]) * lanes);
    value[r] = __ldg(v + static_cast<long long>(from[r]) * lanes);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (from[r] < 0) continue;
    kp[(first + r * step) * lanes] = key[r];
    vp[(first + r * step) * lanes] = value[r];
  }
}

// Rows of any length.
__global__ void __launch_bounds__(kGather) gather_any(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(kGather) + threadIdx.x;
  if (i >= a.H * a.N * a.D) return;
  const long long from = (i / (a.N * a.D) * a.N + a.perm[i / a.D]) * a.D + i % a.D;
  a.kp[i] = a.k[from];
  a.vp[i] = a.v[from];
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  static std::int32_t* counts = nullptr;
  static long long room = 0;
  const auto stream = static_cast<cudaStream_t>(stream_);
  const kbench_args& a = *args;
  if (a.K > kLabelsMax) return 1;
  const int chunks = int((a.N + kChunk - 1) / kChunk);
  const long long needed = a.H * chunks * a.K, shared = kWarps * a.K * 2;
  if (needed > room) {
    if (cudaMalloc(&counts, sizeof(std::int32_t) * needed) != cudaSuccess ||
        cudaFuncSetAttribute(place, cudaFuncAttributeMaxDynamicSharedMemorySize, kWarps * int(kLabelsMax) * 2) !=
            cudaSuccess)
      return 1;
    room = needed;
  }
  const unsigned blocks = unsigned(a.H * chunks);
  count<<<blocks, kChunk, std::size_t(a.K * 4), stream>>>(a, counts, chunks);
  sum_up<<<unsigned(a.H), unsigned((a.K + 31) / 32 * 32), 0, stream>>>(a, counts, chunks);
  place<<<blocks, kChunk, std::size_t(shared), stream>>>(a, counts, chunks);
  const long long lanes = a.D / 8;
  if (a.D % 8 == 0 && lanes <= kGather && kGather % lanes == 0) {
    const long long rows = kGather / lanes * kRows;
    gather<<<dim3(unsigned((a.N + rows - 1) / rows), unsigned(a.H)), kGather, 0, stream>>>(a, int(lanes));
  } else {
    gather_any<<<unsigned((a.H * a.N * a.D + kGather - 1) / kGather), kGather, 0, stream>>>(a);
  }
  return cudaGetLastError();
}
