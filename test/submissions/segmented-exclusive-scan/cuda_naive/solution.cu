// Chunks, their carries by one thread, and the chunks again: three launches, both arrays read twice.
#include <cuda_runtime.h>

#include <cstdint>

#include "task.h"

namespace {

constexpr long long kChunk = 2048;

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

__global__ void carries(std::uint32_t* carry, const bool* restarts, long long chunks) {
  std::uint32_t sum = 0;
  for (long long c = 0; c < chunks; ++c) {
    const std::uint32_t out = carry[c];
    carry[c] = sum;
    sum = restarts[c] ? out : sum + out;
  }
}

__global__ void scans(const kbench_args a, const std::uint32_t* carry, long long chunks) {
  const long long c = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (c >= chunks) return;
  std::uint32_t sum = carry[c];
  for (long long i = c * kChunk; i < end_of(a, c); ++i) {
    if (a.head[i]) sum = 0;
    a.out[i] = std::int32_t(sum);
    sum += std::uint32_t(a.x[i]);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  static std::uint32_t* carry = nullptr;
  static bool* restarts = nullptr;
  static long long room = 0;
  const long long chunks = (args->N + kChunk - 1) / kChunk;
  if (chunks > room) {
    cudaFree(carry);
    cudaFree(restarts);
    if (const cudaError_t error = cudaMalloc(&carry, chunks * sizeof *carry)) return error;
    if (const cudaError_t error = cudaMalloc(&restarts, chunks * sizeof *restarts)) return error;
    room = chunks;
  }
  const unsigned blocks = unsigned((chunks + 127) / 128);
  sums<<<blocks, 128, 0, stream>>>(*args, carry, restarts, chunks);
  carries<<<1, 1, 0, stream>>>(carry, restarts, chunks);
  scans<<<blocks, 128, 0, stream>>>(*args, carry, chunks);
  return cudaGetLastError();
}
