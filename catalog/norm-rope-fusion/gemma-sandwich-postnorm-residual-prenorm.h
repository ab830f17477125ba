// Gemma's sandwich: post-norm of a branch, residual add, pre-norm of the next.
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
  const float* branch = rms_of_rows(exec, a.x, a.M, a.C, a.eps);
  kb::parallel_for(
      exec, a.M * a.C, KB_LAMBDA(long long i) {
        const kb::bf16 normed = kb::bf16(float(a.x[i]) / branch[i / a.C] * (1 + float(a.w1[i % a.C])));
        a.h[i] = kb::bf16(float(a.res[i]) + float(normed));
      });
  const float* stream = rms_of_rows(exec, a.h, a.M, a.C, a.eps);
  kb::parallel_for(
      exec, a.M * a.C,
      KB_LAMBDA(long long i) { a.y[i] = kb::bf16(float(a.h[i]) / stream[i / a.C] * (1 + float(a.w2[i % a.C]))); });
}

// kbench: private from here

// One row; `one` is what is added to the weights.
KB_HD void sandwich(const kbench_args& a, long long m, float one) {
  const long long C = a.C;
  double sum = 0;
  for (long long i = m * C; i < (m + 1) * C; ++i) sum += double(float(a.x[i])) * double(float(a.x[i]));
  const float branch = float(1 / std::sqrt(sum / double(C) + double(a.eps)));
  sum = 0;
  for (long long c = 0; c < C; ++c) {
    const long long i = m * C + c;
    a.h[i] = kb::bf16(float(a.res[i]) + float(kb::bf16(float(a.x[i]) * branch * (one + float(a.w1[c])))));
    sum += double(float(a.h[i])) * double(float(a.h[i]));
  }
  const float stream = float(1 / std::sqrt(sum / double(C) + double(a.eps)));
  for (long long c = 0; c < C; ++c) {
    const long long i = m * C + c;
    a.y[i] = kb::bf16(float(a.h[i]) * ((one + float(a.w2[c])) * stream));
  }
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.M, KB_LAMBDA(long long m) { sandwich(a, m, 1); });
}

// w instead of 1 + w.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.M, KB_LAMBDA(long long m) { sandwich(a, m, 0); });
}
