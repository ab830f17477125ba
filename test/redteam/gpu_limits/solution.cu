// Plays with the context's limits: a stack, a heap and a printf buffer of gigabytes, the deepest recursion.
#include <cuda_runtime.h>

#include "honest.h"

__device__ int deep(int n, volatile int* sink) {
  volatile int local[64];
  local[n & 63] = n;
  if (n > 0) local[(n + 1) & 63] = deep(n - 1, sink);
  *sink = local[n & 63];
  return local[(n + 1) & 63];
}
__global__ void recurse(int n, int* sink) { deep(n, sink); }
__global__ void hoard() {
  for (int k = 0; k < 64; ++k)
    if (void* memory = malloc(1u << 20)) *static_cast<volatile char*>(memory) = 1;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  static int* sink = nullptr;
  if (!sink) {
    for (const cudaLimit limit :
         {cudaLimitStackSize, cudaLimitMallocHeapSize, cudaLimitPrintfFifoSize, cudaLimitDevRuntimePendingLaunchCount})
      for (std::size_t bytes = 64ull << 30; bytes > 1024 && cudaDeviceSetLimit(limit, bytes) != cudaSuccess;)
        bytes /= 2;
    cudaGetLastError();
    if (const cudaError_t error = cudaMalloc(&sink, sizeof *sink)) return error;
    recurse<<<1, 32, 0, stream>>>(64, sink);
    hoard<<<132, 32, 0, stream>>>();
  }
  return honest_on(*a, a->out, stream_);
}
