// Doubling a vector.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { a.y[i] = 2 * a.x[i]; });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { a.y[i] = a.x[i] + a.x[i]; });
}

// Copies.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { a.y[i] = a.x[i]; });
}
