// Mochi's tanh-gated residual of a normalised branch, then a modulated RMS norm.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// sqrt(mean(z^2) + eps) of each row of z [rows, C].
inline float* rms_of_rows(kbench_exec& exec, const kb::bf16* z, long long rows, long long C, float eps) {
  float* rms = kb::scratch<float>(exec, rows);
  kb::parallel_for(
      exec, rows, KB_LAMBDA(long long r) {
        float sum = 0;
        for (long long i = r * C; i < (r + 1) * C; ++i) sum += float(z[i]) * float(z[i]);
        rms[r] = std::sqrt(sum / float(C) + eps);
      });
  return rms;
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, sample = a.N * C;
  const float* branch = rms_of_rows(exec, a.r, a.B * a.N, C, a.eps);
  kb::parallel_for(
      exec, a.B * sample, KB_LAMBDA(long long i) {
        const float gate = std::tanh(float(a.gate[i / sample * C + i % C]));
        a.x1[i] = kb::bf16(float(a.x[i]) + float(kb::bf16(float(a.r[i]) / branch[i / C] * gate)));
      });
  const float* stream = rms_of_rows(exec, a.x1, a.B * a.N, C, a.eps);
  kb::parallel_for(
      exec, a.B * sample, KB_LAMBDA(long long i) {
        a.y[i] = kb::bf16(float(a.x1[i]) / stream[i / C] * (1 + float(a.scale[i / sample * C + i % C])));
      });
}
