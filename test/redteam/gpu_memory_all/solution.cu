// Takes all free memory of the GPU, and some that is page-locked, and keeps it.
#include <cuda_runtime.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static int calls = 0;
  if (const int error = honest_on(*a, a->out, stream)) return error;  // has its workspace before
  if (++calls == 3) {
    for (std::size_t bytes = 16ull << 30; bytes >= 2u << 20; bytes /= 2)
      for (void* memory = nullptr; cudaMalloc(&memory, bytes) == cudaSuccess;) {
      }
    void* memory = nullptr;  // page-locked memory is the host's: no more than it can spare, whoever is charged for it
    for (int block = 0; block < 16 && cudaMallocHost(&memory, 256u << 20) == cudaSuccess; ++block) {
    }
    cudaGetLastError();
  }
  return 0;
}
