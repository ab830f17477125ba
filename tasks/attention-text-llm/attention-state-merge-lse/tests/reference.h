// Partial attentions joined by their log-sum-exp.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long heads = a.NT * a.H;
  float* top = kb::scratch<float>(exec, heads);
  float* weight = kb::scratch<float>(exec, heads);
  kb::parallel_for(
      exec, heads, KB_LAMBDA(long long i) {
        float m = -INFINITY, sum = 0;
        for (long long s = 0; s < a.S; ++s) m = std::fmax(m, a.lse[s * heads + i]);
        for (long long s = 0; s < a.S; ++s)
          if (a.lse[s * heads + i] != -INFINITY) sum += std::exp(a.lse[s * heads + i] - m);
        top[i] = m;
        weight[i] = sum;
        a.out_lse[i] = sum > 0 ? m + std::log(sum) : -INFINITY;
      });
  kb::parallel_for(
      exec, heads * a.D, KB_LAMBDA(long long j) {
        const long long i = j / a.D;
        float sum = 0;
        for (long long s = 0; s < a.S; ++s) {
          const float lse = a.lse[s * heads + i];
          if (lse != -INFINITY) sum += std::exp(lse - top[i]) * float(a.v[s * heads * a.D + j]);
        }
        a.o[j] = kb::bf16(weight[i] > 0 ? sum / weight[i] : 0.0f);
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  constexpr int kPartialsMax = 64;
  const long long heads = a.NT * a.H;
  kb::parallel_for(
      exec, heads, KB_LAMBDA(long long i) {
        for (long long d = 0; d < a.D; ++d) {
          double lse[kPartialsMax], o[kPartialsMax];
          for (long long s = 0; s < a.S; ++s) {
            lse[s] = double(a.lse[s * heads + i]);
            o[s] = std::isinf(lse[s]) ? 0 : double(float(a.v[(s * heads + i) * a.D + d]));
          }
          for (long long step = 1; step < a.S; step *= 2)
            for (long long s = 0; s + step < a.S; s += 2 * step) {
              const long long other = s + step;
              if (std::isinf(lse[other])) continue;
              const double m = std::fmax(lse[s], lse[other]);
              const double x = std::exp(lse[s] - m), y = std::exp(lse[other] - m);
              o[s] = (x * o[s] + y * o[other]) / (x + y);
              lse[s] = m + std::log(x + y);
            }
          a.o[i * a.D + d] = kb::bf16(float(o[0]));
          a.out_lse[i] = float(lse[0]);
        }
      });
}

// Equal weights.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long heads = a.NT * a.H;
  kb::parallel_for(
      exec, heads * a.D, KB_LAMBDA(long long j) {
        const long long i = j / a.D;
        float sum = 0, top = -INFINITY, count = 0;
        for (long long s = 0; s < a.S; ++s) {
          const float lse = a.lse[s * heads + i];
          if (lse == -INFINITY) continue;
          sum += float(a.v[s * heads * a.D + j]);
          top = std::fmax(top, lse);
          ++count;
        }
        a.o[j] = kb::bf16(count > 0 ? sum / count : 0.0f);
        if (j % a.D == 0) a.out_lse[i] = count > 0 ? top + std::log(count) : -INFINITY;
      });
}
