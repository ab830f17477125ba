// A chain of normalised GEMVs, each with its residual.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long B = a.B, C = a.C;
  kb::bf16* t = kb::scratch<kb::bf16>(exec, B * C);
  kb::bf16* x = a.y;
  kb::parallel_for(exec, B * C, KB_LAMBDA(long long i) { x[i] = a.x[i]; });
  for (long long l = 0; l < a.NL; ++l) {
    kb::parallel_for(
        exec, B, KB_LAMBDA(long long b) {
          float sum = 0;
          for (long long c = 0; c < C; ++c) sum += float(x[b * C + c]) * float(x[b * C + c]);
          const float rms = std::sqrt(sum / float(C) + a.eps);
          for (long long c = 0; c < C; ++c) t[b * C + c] = kb::bf16(float(x[b * C + c]) / rms * float(a.g[l * C + c]));
        });
    kb::parallel_for(
        exec, B * C, KB_LAMBDA(long long i) {
          const kb::bf16 *w = a.Wt + (l * C + i % C) * C, *row = t + i / C * C;
          float s = 0;
          for (long long k = 0; k < C; ++k) s += float(row[k]) * float(w[k]);
          x[i] = kb::bf16(float(x[i]) + float(kb::bf16(s / (1 + std::exp(-s)))));
        });
  }
}
