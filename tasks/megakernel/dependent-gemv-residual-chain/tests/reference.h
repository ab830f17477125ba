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

// kbench: private from here

// Every layer takes its input from `from`, y itself or what y began with.
inline void layers(const kbench_args& a, kbench_exec& exec, const kb::bf16* from) {
  const long long B = a.B, C = a.C;
  kb::bf16* t = kb::scratch<kb::bf16>(exec, B * C);
  kb::parallel_for(exec, B * C, KB_LAMBDA(long long i) { a.y[i] = a.x[i]; });
  for (long long l = 0; l < a.NL; ++l) {
    kb::parallel_for(
        exec, B, KB_LAMBDA(long long b) {
          double sum = 0;
          for (long long c = 0; c < C; ++c) sum += double(float(from[b * C + c])) * double(float(from[b * C + c]));
          const float inverse = float(1 / std::sqrt(sum / double(C) + double(a.eps)));
          for (long long c = 0; c < C; ++c)
            t[b * C + c] = kb::bf16(float(from[b * C + c]) * inverse * float(a.g[l * C + c]));
        });
    kb::parallel_for(
        exec, C * B, KB_LAMBDA(long long i) {
          const long long n = i / B, b = i % B;
          float split[4] = {};
          for (long long k = 0; k < C; ++k) {
            float& sum = split[k * 4 / C];
            sum = std::fma(float(t[b * C + k]), float(a.Wt[(l * C + n) * C + k]), sum);
          }
          const float s = split[3] + split[2] + (split[1] + split[0]);
          const float silu = s * (0.5f + 0.5f * std::tanh(0.5f * s));
          a.y[b * C + n] = kb::bf16(float(a.y[b * C + n]) + float(kb::bf16(silu)));
        });
  }
}

inline void independent(const kbench_args& a, kbench_exec& exec) { layers(a, exec, a.y); }

// No dependency: all layers see x_0.
inline void control(const kbench_args& a, kbench_exec& exec) { layers(a, exec, a.x); }
