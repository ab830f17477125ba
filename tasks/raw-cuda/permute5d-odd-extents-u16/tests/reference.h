// Five axes of 16-bit words in another order.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.H * a.C * a.Wd * a.D, KB_LAMBDA(long long i) {
        const long long d = i % a.D, w = i / a.D % a.Wd, c = i / (a.D * a.Wd) % a.C, h = i / (a.D * a.Wd * a.C) % a.H;
        const long long b = i / (a.D * a.Wd * a.C * a.H);
        a.out[i] = a.x[(((b * a.C + c) * a.D + d) * a.H + h) * a.Wd + w];
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long plane = a.D * a.Wd;
  std::uint16_t* half = kb::scratch<std::uint16_t>(exec, a.B * a.H * a.C * plane);  // [B, H, C, D, Wd]
  kb::parallel_for(
      exec, a.B * a.C * a.D, KB_LAMBDA(long long i) {
        const long long d = i % a.D, c = i / a.D % a.C, b = i / (a.D * a.C);
        for (long long h = 0; h < a.H; ++h)
          for (long long w = 0; w < a.Wd; ++w)
            half[(((b * a.H + h) * a.C + c) * a.D + d) * a.Wd + w] = a.x[(i * a.H + h) * a.Wd + w];
      });
  kb::parallel_for(
      exec, a.B * a.H * a.C, KB_LAMBDA(long long i) {
        for (long long d = 0; d < a.D; ++d)
          for (long long w = 0; w < a.Wd; ++w) a.out[i * plane + w * a.D + d] = half[i * plane + d * a.Wd + w];
      });
}

// Swaps the last two axes and leaves the others where they are.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.C * a.D * a.Wd * a.H, KB_LAMBDA(long long i) {
        const long long h = i % a.H, w = i / a.H % a.Wd;
        a.out[i] = a.x[i / (a.H * a.Wd) * (a.H * a.Wd) + h * a.Wd + w];
      });
}
