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

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  kb::parallel_for(
      exec, a.M, KB_LAMBDA(long long m) {
        double lane[64] = {};
        for (long long c = 0; c < C; ++c) {
          const double t = double(float(a.x[m * C + c])) + double(float(a.res[m * C + c]));
          lane[c % 64] += t * t;
        }
        for (int half = 32; half > 0; half /= 2)
          for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        const double scale = 1 / std::sqrt(lane[0] / double(C) + double(a.eps));
        for (long long c = 0; c < C; ++c) {
          const double t = double(float(a.x[m * C + c])) + double(float(a.res[m * C + c]));
          a.res_out[m * C + c] = kb::bf16(float(t));
          a.y[m * C + c] = kb::bf16(float(t * double(float(a.w[c])) * scale));
        }
      });
}

// Normalises x alone.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  kb::parallel_for(
      exec, a.M, KB_LAMBDA(long long m) {
        float sum = 0;
        for (long long i = m * C; i < (m + 1) * C; ++i) sum += float(a.x[i]) * float(a.x[i]);
        const float rms = std::sqrt(sum / float(C) + a.eps);
        for (long long i = m * C; i < (m + 1) * C; ++i) {
          a.res_out[i] = kb::bf16(float(a.x[i]));
          a.y[i] = kb::bf16(float(a.x[i]) / rms * float(a.w[i - m * C]));
        }
      });
}
