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

// kbench: private from here

KB_HD float inverse_rms(const kb::bf16* z, long long C, float eps) {
  double sum = 0;
  for (long long c = 0; c < C; ++c) sum += double(float(z[c])) * double(float(z[c]));
  return float(1 / std::sqrt(sum / double(C) + double(eps)));
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  kb::parallel_for(
      exec, a.B * a.N, KB_LAMBDA(long long n) {
        const long long mod = n / a.N * C;
        const float branch = inverse_rms(a.r + n * C, C, a.eps);
        for (long long c = 0; c < C; ++c) {
          const float gate = 1 - 2 / (std::exp(2 * float(a.gate[mod + c])) + 1);
          a.x1[n * C + c] = kb::bf16(float(kb::bf16(float(a.r[n * C + c]) * (branch * gate))) + float(a.x[n * C + c]));
        }
        const float stream = inverse_rms(a.x1 + n * C, C, a.eps);
        for (long long c = 0; c < C; ++c) {
          const float x1 = float(a.x1[n * C + c]) * stream;
          a.y[n * C + c] = kb::bf16(std::fma(x1, float(a.scale[mod + c]), x1));
        }
      });
}

// The raw gate, the branch as it is.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  kb::parallel_for(
      exec, a.B * a.N, KB_LAMBDA(long long n) {
        const long long mod = n / a.N * C;
        for (long long c = 0; c < C; ++c)
          a.x1[n * C + c] = kb::bf16(float(a.x[n * C + c]) + float(a.r[n * C + c]) * float(a.gate[mod + c]));
        const float stream = inverse_rms(a.x1 + n * C, C, a.eps);
        for (long long c = 0; c < C; ++c)
          a.y[n * C + c] = kb::bf16(float(a.x1[n * C + c]) * stream * (1 + float(a.scale[mod + c])));
      });
}
