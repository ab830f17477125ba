// Chunks, their carries by one block, and the chunks again.
#include "honest.h"

#include <cuda_runtime.h>

namespace {

constexpr long long kChunk = 512;
constexpr int kThreads = 1024;

__device__ long long end_of(const kbench_args& a, long long c) {
  return (c + 1) * kChunk < a.N ? (c + 1) * kChunk : a.N;
}

__global__ void sums(const kbench_args a, std::uint32_t* carry, bool* restarts, long long chunks) {
  const long long c = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (c >= chunks) return;
  std::uint32_t sum = 0;
  bool restarted = false;
  for (long long i = c * kChunk; i < end_of(a, c); ++i) {
    if (a.head[i]) sum = 0, restarted = true;
    sum += std::uint32_t(a.x[i]);
  }
  carry[c] = sum;
  restarts[c] = restarted;
}

// Each thread a range of chunks; thread 0 puts the ranges together.
__global__ void __launch_bounds__(kThreads) carries(std::uint32_t* carry, const bool* restarts, long long chunks) {
  __shared__ std::uint32_t range_sum[kThreads];
  __shared__ bool range_restarts[kThreads];
  const long long each = (chunks + kThreads - 1) / kThreads, begin = threadIdx.x * each;
  const long long end = begin + each < chunks ? begin + each : chunks;
  std::uint32_t sum = 0;
  bool restarted = false;
  for (long long c = begin; c < end; ++c) {
    sum = restarts[c] ? carry[c] : sum + carry[c];
    restarted = restarted || restarts[c];
  }
  range_sum[threadIdx.x] = sum;
  range_restarts[threadIdx.x] = restarted;
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t before = 0;
    for (int t = 0; t < kThreads; ++t) {
      const std::uint32_t own = range_sum[t];
      range_sum[t] = before;
      before = range_restarts[t] ? own : before + own;
    }
  }
  __syncthreads();
  sum = range_sum[threadIdx.x];
  for (long long c = begin; c < end; ++c) {
    const std::uint32_t own = carry[c];
    carry[c] = sum;
    sum = restarts[c] ? own : sum + own;
  }
}

__global__ void scans(const kbench_args a, std::int32_t* out, const std::uint32_t* carry, long long chunks) {
  const long long c = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (c >= chunks) return;
  std::uint32_t sum = carry[c];
  for (long long i = c * kChunk; i < end_of(a, c); ++i) {
    if (a.head[i]) sum = 0;
    const std::uint32_t add = std::uint32_t(a.x[i]);  // before the store: `out` may be `x`
    out[i] = std::int32_t(sum);
    sum += add;
  }
}

}  // namespace

int honest_on(const kbench_args& a, std::int32_t* out, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  static std::uint32_t* carry = nullptr;
  static bool* restarts = nullptr;
  static long long room = 0;
  const long long chunks = (a.N + kChunk - 1) / kChunk;
  if (chunks > room) {
    cudaFree(carry);
    cudaFree(restarts);
    room = 0;
    if (const cudaError_t error = cudaMalloc(&carry, chunks * sizeof *carry)) return error;
    if (const cudaError_t error = cudaMalloc(&restarts, chunks * sizeof *restarts)) return error;
    room = chunks;
  }
  const unsigned blocks = unsigned((chunks + 127) / 128);
  sums<<<blocks, 128, 0, stream>>>(a, carry, restarts, chunks);
  carries<<<1, kThreads, 0, stream>>>(carry, restarts, chunks);
  scans<<<blocks, 128, 0, stream>>>(a, out, carry, chunks);
  return cudaGetLastError();
}

int honest_scan(const kbench_args& a, std::int32_t* out) {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  if (const int error = honest_on(a, out, stream)) return error;
  return cudaStreamSynchronize(stream);
}

int honest(const kbench_args& a) { return honest_scan(a, a.out); }
