// Lion with stochastic rounding.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long i) {
        const float p = float(a.P[i]), m = float(a.m[i]), g = float(a.G[i]);
        const float c = a.b1 * m + (1 - a.b1) * g, sign = c > 0 ? 1.0f : c < 0 ? -1.0f : 0.0f;
        const float q = p * (1 - a.lr * a.wd) - a.lr * sign;
        a.P[i].bits = std::uint16_t((kb::detail::bits_of(q) + a.rnd[i]) >> 16);
        a.m[i] = kb::bf16(a.b2 * m + (1 - a.b2) * g);
      });
}
