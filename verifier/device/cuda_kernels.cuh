// The verifier's kernels as launches; what each element does is in kernels.h, single source with the cpu device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "verifier/device/kernels.h"
#include "verifier/problem/problem.h"

namespace kbench::verify::gpu {

inline constexpr int kThreads = 256;
inline constexpr int kRegionsMax = 64;  // outputs of one snapshot

// Every launch of the verifier writes its times here. Pinned host memory, so that the host can watch a kernel start
// without a call into the driver.
struct Stamps {                         // one a GPU, each of its own clock: those of two GPUs are never compared
  volatile unsigned long long quiet;    // end of the second null kernel
  volatile unsigned long long ready;    // all is filled, poisoned and evicted
  volatile unsigned long long a;        // window opens; on a GPU but the first: it lets go, right after that
  volatile unsigned long long started;  // the snapshot's block 0 runs
};

inline constexpr unsigned long long kHoldNs = 5'000'000'000;  // then a GPU lets go whatever the others do
struct AllStamps {
  Stamps* of[kGpusMax];
  int gpus;
};

__device__ inline unsigned long long now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

#define KB_GRID_STRIDE(i, n)                                                                         \
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; i < (n); \
       i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x)

__global__ void null_kernel() {}

__global__ void quiet_kernel(Stamps* stamps) {
  stamps->quiet = now_ns();
  __threadfence_system();
}

// Opens the window: the time first, then the go word, written by the GPU itself through the worker's page. No host is
// between the two.
__global__ void open_kernel(Stamps* stamps, volatile std::uint32_t* go, std::uint32_t epoch) {
  stamps->a = now_ns();
  __threadfence_system();
  *go = epoch;
  __threadfence_system();
}

// Of several GPUs, the first waits until all are ready, then opens the window as above; the others stay occupied until
// it has. So none of them has room for a worker's kernel between its own preparations and A.
__global__ void open_first_kernel(const AllStamps all, volatile std::uint32_t* go, std::uint32_t epoch) {
  const unsigned long long start = now_ns();
  all.of[0]->ready = start;
  for (int gpu = 1; gpu < all.gpus; ++gpu)
    while (all.of[gpu]->ready == 0 && now_ns() - start < kHoldNs) {
    }
  all.of[0]->a = now_ns();
  __threadfence_system();
  *go = epoch;
  __threadfence_system();
}

__global__ void hold_kernel(Stamps* mine, const Stamps* first) {
  const unsigned long long start = now_ns();
  mine->ready = start;
  __threadfence_system();
  while (first->a == 0 && now_ns() - start < kHoldNs) {
  }
  mine->a = now_ns();
  __threadfence_system();
}

__global__ void poison_kernel(std::byte* data, std::uint64_t bytes, std::uint64_t key) {
  KB_GRID_STRIDE(i, words_of(bytes)) poison_word(data, bytes, i, key);
}

__global__ void copy_kernel(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  KB_GRID_STRIDE(i, words_of(bytes)) put_word(to, bytes, i, word_at(from, bytes, i));
}

// Evicts L2 by reading: a write-back of dirty lines of the verifier's own would otherwise fall into the window.
__global__ void evict_kernel(const uint4* scratch, std::uint64_t count, std::uint32_t* sink) {
  std::uint32_t sum = 0;
  KB_GRID_STRIDE(i, count) {
    const uint4 v = __ldcg(scratch + i);
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x9e3779b9u) *sink = sum;
}

__device__ inline void add_to_block_sum(unsigned long long value, unsigned long long* total) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
  if ((threadIdx.x & 31) == 0) atomicAdd(total, value);
}

__global__ void hash_kernel(const std::byte* data, std::uint64_t bytes, std::uint64_t key, unsigned long long* sum) {
  unsigned long long mine = 0;
  KB_GRID_STRIDE(i, words_of(bytes)) mine += hash_word(key, i, word_at(data, bytes, i));
  add_to_block_sum(mine, sum);
}

__global__ void unpoisoned_kernel(const std::byte* data, std::uint64_t bytes, std::uint64_t key,
                                  unsigned long long* sum) {
  unsigned long long mine = 0;
  KB_GRID_STRIDE(i, words_of(bytes)) mine += static_cast<unsigned long long>(unpoisoned_in_word(data, bytes, i, key));
  add_to_block_sum(mine, sum);
}

// Closes the window and takes the snapshot: B is the earliest start of any block. All outputs in one launch, their
// chunks in one secret order, so that nothing of the worker's can run between B and a part of the copy.
struct SnapshotRegion {
  const std::byte* from;
  std::byte* to;
  std::uint64_t bytes, first_chunk;
};
struct SnapshotPlan {
  SnapshotRegion regions[kRegionsMax];
  std::uint64_t chunks;
  std::uint64_t key;
  int count;
};

__global__ void snapshot_kernel(const __grid_constant__ SnapshotPlan plan, Stamps* stamps, unsigned long long* b) {
  if (threadIdx.x == 0) {
    const unsigned long long start = now_ns();
    atomicMin(b, start);
    if (blockIdx.x == 0) {
      stamps->started = start;
      __threadfence_system();
    }
  }
  const Permutation order = permutation(plan.chunks, plan.key);
  for (std::uint64_t turn = blockIdx.x; turn < plan.chunks; turn += gridDim.x) {
    const std::uint64_t chunk = permuted(order, turn);
    int r = 0;
    while (r + 1 < plan.count && plan.regions[r + 1].first_chunk <= chunk) ++r;
    const SnapshotRegion& region = plan.regions[r];
    const std::uint64_t start = (chunk - region.first_chunk) * kChunkBytes;
    const std::uint64_t length = region.bytes - start < kChunkBytes ? region.bytes - start : kChunkBytes;
    for (std::uint64_t word = threadIdx.x; word < words_of(length); word += blockDim.x)
      put_word(region.to + start, length, word, word_at(region.from + start, length, word));
  }
}

// A fixed load: arithmetic on every SM for about a millisecond.
__global__ void canary_kernel(float* out, int rounds) {
  float a = static_cast<float>(threadIdx.x), b = 1.0001f;
  for (int i = 0; i < rounds; ++i) {
    a = a * b + 0.5f;
    b = b * 0.999f + 0.001f;
  }
  if (a == 12345.0f) *out = b;
}

}  // namespace kbench::verify::gpu
