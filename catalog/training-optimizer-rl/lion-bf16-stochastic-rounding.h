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

// kbench: private from here

KB_HD float stepped(const kbench_args& a, long long i) {
  const float p = float(a.P[i]), c = std::fma(a.b1, float(a.m[i]), (1 - a.b1) * float(a.G[i]));
  return std::fma(p, 1 - a.lr * a.wd, c > 0 ? -a.lr : c < 0 ? a.lr : 0.0f);
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long i) {
        const std::uint32_t bits = kb::detail::bits_of(stepped(a, i)), below = bits & 0xffffu;
        const bool up = below + a.rnd[i] >= 0x10000u;  // away from zero
        a.P[i].bits = std::uint16_t((bits >> 16) + (up ? 1 : 0));
        const float m = float(a.m[i]);
        a.m[i] = kb::bf16(std::fma(1 - a.b2, float(a.G[i]) - m, m));
      });
}

// To nearest.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long i) {
        a.P[i] = kb::bf16(stepped(a, i));
        a.m[i] = kb::bf16(a.b2 * float(a.m[i]) + (1 - a.b2) * float(a.G[i]));
      });
}
