// Min-p sampling by inversion, in the order of the vocabulary.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        const kb::bf16* logits = a.logits + b * a.V;
        float M = -INFINITY;
        for (long long i = 0; i < a.V; ++i) M = std::fmax(M, float(logits[i]) / a.temp[b]);
        const float threshold = M + std::log(a.minp[b]);
        double all = 0, kept = 0, sum = 0;
        int count = 0;
        for (long long i = 0; i < a.V; ++i) {
          const float x = float(logits[i]) / a.temp[b], e = std::exp(x - M);
          all += double(e);
          if (x >= threshold) kept += double(e), ++count;
        }
        long long token = -1;
        for (long long i = 0; i < a.V && !(sum > double(a.u[b]) * kept); ++i) {
          const float x = float(logits[i]) / a.temp[b];
          if (x < threshold) continue;
          sum += double(std::exp(x - M));
          token = i;
        }
        a.token[b] = int(token);
        a.mass[b] = float(kept / all);
        a.nkeep[b] = count;
      });
}

// kbench: private from here

KB_HD float total(const float* strands) {
  float sum = 0;
  for (int s = 0; s < 32; ++s) sum += strands[s];
  return sum;
}

// `relative`: the threshold is minp of the maximum; else minp itself.
KB_HD void sample(const kbench_args& a, long long b, bool relative) {
  constexpr float kLog2e = 1.44269504f;
  const kb::bf16* logits = a.logits + b * a.V;
  const float slope = kLog2e / a.temp[b];
  float M = -INFINITY, all[32] = {}, kept[32] = {};
  for (long long i = a.V - 1; i >= 0; --i) M = std::fmax(M, float(logits[i]));
  for (long long i = 0; i < a.V; ++i) all[i % 32] += std::exp2(std::fma(float(logits[i]), slope, -M * slope));
  const float sum = total(all);
  const float threshold = M / a.temp[b] + std::log(a.minp[b]) + (relative ? 0 : std::log(sum));
  int count = 0;
  for (long long i = 0; i < a.V; ++i) {
    if (float(logits[i]) / a.temp[b] < threshold) continue;
    kept[i % 32] += std::exp2(std::fma(float(logits[i]), slope, -M * slope));
    ++count;
  }
  const float Ck = total(kept);
  float so_far = 0;
  int token = 0;
  for (long long i = 0; i < a.V && !(so_far > a.u[b] * Ck); ++i) {
    if (float(logits[i]) / a.temp[b] < threshold) continue;
    so_far += std::exp2(std::fma(float(logits[i]), slope, -M * slope));
    token = int(i);
  }
  a.token[b] = token;
  a.mass[b] = Ck / sum;
  a.nkeep[b] = count;
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B, KB_LAMBDA(long long b) { sample(a, b, true); });
}

// An absolute threshold.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B, KB_LAMBDA(long long b) { sample(a, b, false); });
}
