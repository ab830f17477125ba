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
