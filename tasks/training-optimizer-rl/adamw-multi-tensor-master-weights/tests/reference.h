// AdamW over many tensors, with a bf16 copy.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// The tensor that owns element i.
KB_HD long long owner(const kbench_args& a, long long i) {
  long long low = 0, high = a.NT;  // off[low] <= i < off[high]
  while (high - low > 1) {
    const long long middle = (low + high) / 2;
    (a.off[middle] <= i ? low : high) = middle;
  }
  return low;
}

KB_HD void step(const kbench_args& a, long long i, float lr, float wd) {
  const float g = float(a.G[i]) * a.gs[0];
  a.m[i] = a.b1 * a.m[i] + (1 - a.b1) * g;
  a.v[i] = a.b2 * a.v[i] + (1 - a.b2) * g * g;
  a.P[i] -= lr * (a.m[i] / a.bc1 / (std::sqrt(a.v[i] / a.bc2) + a.eps) + wd * a.P[i]);
  a.Pb[i] = kb::bf16(a.P[i]);
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long i) {
        const long long s = owner(a, i);
        step(a, i, a.lr[s], a.wd[s]);
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const float of_m = 1 / a.bc1, of_v = 1 / std::sqrt(a.bc2);
  kb::parallel_for(
      exec, a.NT, KB_LAMBDA(long long s) {
        const float keep = 1 - a.lr[s] * a.wd[s];
        for (long long i = a.off[s]; i < a.off[s + 1]; ++i) {
          const float g = float(a.G[i]) * a.gs[0];
          a.m[i] = std::fma(1 - a.b1, g - a.m[i], a.m[i]);
          a.v[i] = std::fma(a.b2, a.v[i], (1 - a.b2) * (g * g));
          const float update = a.m[i] * of_m * (1 / std::fma(std::sqrt(a.v[i]), of_v, a.eps));
          a.P[i] = std::fma(a.P[i], keep, -a.lr[s] * update);
          a.Pb[i] = kb::bf16(a.P[i]);
        }
      });
}

// The first tensor's learning rate and decay for all.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { step(a, i, a.lr[0], a.wd[0]); });
}
