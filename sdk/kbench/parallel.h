// What a task's reference is written with: one source, compiled for the CPU by the host compiler and for a GPU by nvcc
// (--extended-lambda).
//
//   inline void reference(const kbench_args& a, kbench_exec& exec) {
//     float* sum = kb::scratch<float>(exec, a.M);
//     kb::parallel_for(exec, a.M, KB_LAMBDA(long long m) { sum[m] = …; });        // a phase
//     kb::parallel_for(exec, a.M * a.C, KB_LAMBDA(long long i) { … });  // starts when the first has ended everywhere
//   }
//
// The lambda captures by value, also the arguments' struct. Whatever fails (memory, a launch) throws and becomes the
// non-zero return value of the exported function.
#pragma once

#include <cmath>
#include <cstdint>

#include "kbench/abi.h"
#include "kbench/types.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define KB_LAMBDA [=] __host__ __device__
#else
#define KB_LAMBDA [=]
#endif

namespace kb {

enum Failure : int { kOutOfMemory = 10001, kUnknownFailure = 10002 };  // others: a cudaError_t
struct Failed {
  int code;
};

#ifdef __CUDACC__

namespace detail {

template <class Body>
__global__ void for_each(long long n, Body body) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) body(i);
}

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw Failed{static_cast<int>(error)};
}

}  // namespace detail

inline constexpr int kBlockThreads = 256;
inline constexpr long long kBlocksMax = 1 << 20;

// body(i) for every i in [0, n), in any order and at the same time. Its end is a barrier for the whole device.
template <class Body>
void parallel_for(kbench_exec& exec, long long n, Body body) {
  if (n <= 0) return;
  const long long blocks = (n + kBlockThreads - 1) / kBlockThreads;
  detail::for_each<<<static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax), kBlockThreads, 0,
                     static_cast<cudaStream_t>(exec.stream)>>>(n, body);
  detail::check(cudaGetLastError());
}

#else

template <class Body>
void parallel_for(kbench_exec& exec, long long n, Body body) {
  if (n <= 0) return;
  exec.run(
      exec.context, n,
      [](void* arg, long long begin, long long end) {
        Body& f = *static_cast<Body*>(arg);
        for (long long i = begin; i < end; ++i) f(i);
      },
      &body);
}

#endif

// Uninitialised memory of the device for n elements, freed after the call.
template <class T>
T* scratch(kbench_exec& exec, long long n) {
  void* memory = exec.scratch(exec.context, static_cast<unsigned long long>(n > 0 ? n : 1) * sizeof(T));
  if (memory == nullptr) throw Failed{kOutOfMemory};
  return static_cast<T*>(memory);
}

// Adds to a word that other iterations add to as well; returns what was there before. The order is not defined:
// integers only.
KB_HD std::uint32_t atomic_add(std::uint32_t* at, std::uint32_t value) {
#ifdef __CUDA_ARCH__
  return atomicAdd(at, value);
#else
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
#endif
}

namespace detail {

template <class Function>
int run(Function function, const kbench_args* args, kbench_exec* exec) noexcept {
  try {
    function(*args, *exec);
    return 0;
  } catch (const Failed& failed) {
    return failed.code;
  } catch (...) {
    return kUnknownFailure;
  }
}

}  // namespace detail
}  // namespace kb

#define KB_EXPORT(symbol, function)                                                                          \
  extern "C" __attribute__((visibility("default"))) int symbol(const kbench_args* args, kbench_exec* exec) { \
    return kb::detail::run([](const kbench_args& a, kbench_exec& e) { function(a, e); }, args, exec);        \
  }

// A reference library is one source file: #include "task.h", #include "reference.h", then this line.
#define KB_REFERENCE_EXPORTS KB_EXPORT(kbench_reference, reference)
// And in an author's build, from the catalogue's whole header:
#define KB_AUTHOR_EXPORTS                \
  KB_EXPORT(kbench_reference, reference) \
  KB_EXPORT(kbench_independent, independent) KB_EXPORT(kbench_control, control)
