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

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  kb::parallel_for(
      exec, a.B * a.L, KB_LAMBDA(long long r) {
        const long long b = r / a.L;
        const kb::bf16* mod = a.mod + b * 6 * C;
        float mean = 0, m2 = 0;
        for (long long c = 0; c < C; ++c) {
          const kb::bf16 x1 = kb::bf16(std::fma(float(mod[2 * C + c]), float(a.a[r * C + c]), float(a.x[r * C + c])));
          a.x1[r * C + c] = x1;
          const float from_old = float(x1) - mean;
          mean += from_old / float(c + 1);
          m2 += from_old * (float(x1) - mean);
        }
        const float inverse = 1 / std::sqrt(m2 / float(C) + a.eps);
        for (long long c = 0; c < C; ++c) {
          const float slope = inverse * (1 + float(mod[4 * C + c]));
          const float offset = float(mod[3 * C + c]) - mean * slope;
          a.y[r * C + c] = kb::bf16(std::fma(float(a.x1[r * C + c]), slope, offset));
        }
      });
}

// No gate, and scale2 in place of 1 + scale2.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C;
  kb::parallel_for(
      exec, a.B * a.L, KB_LAMBDA(long long r) {
        const kb::bf16* mod = a.mod + r / a.L * 6 * C;
        double sum = 0, squares = 0;
        for (long long i = r * C; i < (r + 1) * C; ++i) {
          a.x1[i] = kb::bf16(float(a.x[i]) + float(a.a[i]));
          sum += double(float(a.x1[i]));
          squares += double(float(a.x1[i])) * double(float(a.x1[i]));
        }
        const float mean = float(sum / double(C));
        const float deviation = std::sqrt(float(squares / double(C)) - mean * mean + a.eps);
        for (long long c = 0; c < C; ++c)
          a.y[r * C + c] =
              kb::bf16((float(a.x1[r * C + c]) - mean) / deviation * float(mod[4 * C + c]) + float(mod[3 * C + c]));
      });
}
