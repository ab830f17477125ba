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

// kbench: private from here

KB_HD void modulate(const kbench_args& a, long long n, const float* e) {
  const long long C = a.C;
  float mean = 0, m2 = 0;
  for (long long c = 0; c < C; ++c) {
    const float x = float(a.x[n * C + c]), from_old = x - mean;
    mean += from_old / float(c + 1);
    m2 += from_old * (x - mean);
  }
  const float inverse = 1 / std::sqrt(m2 / float(C) + a.eps);
  for (long long c = 0; c < C; ++c) {
    const float slope = (1 + a.table[C + c] + e[C + c]) * inverse;
    a.y[n * C + c] = kb::bf16(std::fma(float(a.x[n * C + c]), slope, a.table[c] + e[c] - mean * slope));
  }
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long N = a.GF * a.S;
  kb::parallel_for(
      exec, a.B * N, KB_LAMBDA(long long i) {
        const long long n = a.B * N - 1 - i;
        modulate(a, n, a.e + (n / N * a.U + a.tidx[n]) * 6 * a.C);
      });
}

// Time embedding 0 for all.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long N = a.GF * a.S;
  kb::parallel_for(exec, a.B * N, KB_LAMBDA(long long n) { modulate(a, n, a.e + n / N * a.U * 6 * a.C); });
}
