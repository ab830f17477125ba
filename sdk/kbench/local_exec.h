// An execution context for references outside the verifier: the author's checks, and reference.py. CPU: std::thread.
// CUDA: the default stream. Compiled into the same file as the reference.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kbench/parallel.h"

namespace kb {

class LocalExec {
 public:
  LocalExec() : exec_{this, run, scratch, nullptr} {}
  ~LocalExec() {
    for (void* memory : memory_) release(memory);
  }
  LocalExec(const LocalExec&) = delete;
  LocalExec& operator=(const LocalExec&) = delete;

  kbench_exec* get() { return &exec_; }

 private:
  static void run(void*, long long n, void (*body)(void* arg, long long begin, long long end), void* arg) {
    const long long cores = std::max(1u, std::thread::hardware_concurrency());
    const long long threads = std::min(n, cores);
    std::vector<std::thread> others;
    for (long long t = 1; t < threads; ++t) others.emplace_back(body, arg, n * t / threads, n * (t + 1) / threads);
    body(arg, 0, n / threads);
    for (std::thread& thread : others) thread.join();
  }

  static void* scratch(void* context, unsigned long long bytes) {
    void* memory = nullptr;
#ifdef __CUDACC__
    if (cudaMalloc(&memory, bytes) != cudaSuccess) return nullptr;
#else
    if (posix_memalign(&memory, 256, bytes) != 0) return nullptr;
#endif
    static_cast<LocalExec*>(context)->memory_.push_back(memory);
    return memory;
  }

  static void release(void* memory) {
#ifdef __CUDACC__
    cudaFree(memory);
#else
    std::free(memory);
#endif
  }

  kbench_exec exec_;
  std::vector<void*> memory_;
};

}  // namespace kb
