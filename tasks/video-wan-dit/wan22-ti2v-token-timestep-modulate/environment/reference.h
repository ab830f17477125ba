// LayerNorm modulated by a timestep per token.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, N = a.GF * a.S;
  float* mean = kb::scratch<float>(exec, a.B * N);
  float* deviation = kb::scratch<float>(exec, a.B * N);
  kb::parallel_for(
      exec, a.B * N, KB_LAMBDA(long long n) {
        float sum = 0, squares = 0;
        for (long long i = n * C; i < (n + 1) * C; ++i) sum += float(a.x[i]);
        mean[n] = sum / float(C);
        for (long long i = n * C; i < (n + 1) * C; ++i) {
          const float t = float(a.x[i]) - mean[n];
          squares += t * t;
        }
        deviation[n] = std::sqrt(squares / float(C) + a.eps);
      });
  kb::parallel_for(
      exec, a.B * N * C, KB_LAMBDA(long long i) {
        const long long n = i / C, c = i % C;
        const float* e = a.e + (n / N * a.U + a.tidx[n]) * 6 * C;
        const float shift = a.table[c] + e[c], scale = a.table[C + c] + e[C + c];
        a.y[i] = kb::bf16((float(a.x[i]) - mean[n]) / deviation[n] * (1 + scale) + shift);
      });
}
