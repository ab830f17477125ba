// Residual add fused with RMSNorm.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  float* rms = kb::scratch<float>(exec, a.M);
  kb::parallel_for(
      exec, a.M, KB_LAMBDA(long long m) {
        float sum = 0;
        for (long long i = m * C; i < (m + 1) * C; ++i) {
          const float t = float(a.x[i]) + float(a.res[i]);
          sum += t * t;
        }
        rms[m] = std::sqrt(sum / float(C) + a.eps);
      });
  kb::parallel_for(
      exec, a.M * C, KB_LAMBDA(long long i) {
        const float t = float(a.x[i]) + float(a.res[i]);
        a.res_out[i] = kb::bf16(t);
        a.y[i] = kb::bf16(t / rms[i / C] * float(a.w[i % C]));
      });
}
