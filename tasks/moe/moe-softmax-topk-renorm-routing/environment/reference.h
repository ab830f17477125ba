// Top-K of a softmax, renormalised.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline constexpr int kChosenMax = 32;

// The K largest of E logits, largest first, the lower index first among equals.
KB_HD void choose(const float* logits, long long E, long long K, float* value, int* id) {
  int held = 0;
  for (int e = 0; e < E; ++e) {
    if (held == K && !(logits[e] > value[K - 1])) continue;
    int j = held < K ? held++ : int(K) - 1;
    for (; j > 0 && logits[e] > value[j - 1]; --j) value[j] = value[j - 1], id[j] = id[j - 1];
    value[j] = logits[e];
    id[j] = e;
  }
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.T, KB_LAMBDA(long long t) {
        float value[kChosenMax];
        int id[kChosenMax];
        choose(a.logits + t * a.E, a.E, a.K, value, id);
        float sum = 0;
        for (int j = 0; j < a.K; ++j) sum += std::exp(value[j] - value[0]);
        for (int j = 0; j < a.K; ++j) {
          a.w[t * a.K + j] = std::exp(value[j] - value[0]) / sum;
          a.ids[t * a.K + j] = id[j];
        }
      });
}
