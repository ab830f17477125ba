#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long i) {
        a.y[i] = a.s * a.x[i];
        a.acc[i] += a.x[i];
      });
}
