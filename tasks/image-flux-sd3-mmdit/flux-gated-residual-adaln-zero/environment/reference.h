// Gated residual, then AdaLN-Zero.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, L = a.L, rows = a.B * L;
  float* mean = kb::scratch<float>(exec, rows);
  float* deviation = kb::scratch<float>(exec, rows);
  kb::parallel_for(
      exec, rows * C, KB_LAMBDA(long long i) {
        const float gate = float(a.mod[(i / (L * C) * 6 + 2) * C + i % C]);
        a.x1[i] = kb::bf16(float(a.x[i]) + gate * float(a.a[i]));
      });
  kb::parallel_for(
      exec, rows, KB_LAMBDA(long long r) {
        float sum = 0, squares = 0;
        for (long long i = r * C; i < (r + 1) * C; ++i) sum += float(a.x1[i]);
        mean[r] = sum / float(C);
        for (long long i = r * C; i < (r + 1) * C; ++i) {
          const float t = float(a.x1[i]) - mean[r];
          squares += t * t;
        }
        deviation[r] = std::sqrt(squares / float(C) + a.eps);
      });
  kb::parallel_for(
      exec, rows * C, KB_LAMBDA(long long i) {
        const long long r = i / C, c = i % C, b = r / L;
        const float shift = float(a.mod[(b * 6 + 3) * C + c]), scale = float(a.mod[(b * 6 + 4) * C + c]);
        a.y[i] = kb::bf16((float(a.x1[i]) - mean[r]) / deviation[r] * (1 + scale) + shift);
      });
}
