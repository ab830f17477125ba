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

// kbench: private from here

// K rounds of arg-max; the weights divided by the sum over the chosen, or over all.
KB_HD void route(const kbench_args& a, long long t, bool over_chosen) {
  constexpr float kLog2e = 1.44269504f;
  const float* logits = a.logits + t * a.E;
  float mx = -INFINITY, all = 0, chosen = 0;
  for (long long e = 0; e < a.E; ++e) mx = std::fmax(mx, logits[e]);
  const float offset = mx * kLog2e;
  for (long long e = a.E - 1; e >= 0; --e) all += std::exp2(std::fma(logits[e], kLog2e, -offset));
  long long last = -1;
  for (long long j = 0; j < a.K; ++j) {
    long long best = -1;
    for (long long e = 0; e < a.E; ++e) {
      const bool taken = last >= 0 && (logits[e] > logits[last] || (logits[e] == logits[last] && e <= last));
      if (!taken && (best < 0 || logits[e] > logits[best])) best = e;
    }
    a.ids[t * a.K + j] = int(best);
    a.w[t * a.K + j] = std::exp2(std::fma(logits[best], kLog2e, -offset)) / all;
    chosen += a.w[t * a.K + j];
    last = best;
  }
  if (over_chosen)
    for (long long j = 0; j < a.K; ++j) a.w[t * a.K + j] *= 1 / chosen;
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.T, KB_LAMBDA(long long t) { route(a, t, true); });
}

// Softmax over all experts, as it is.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.T, KB_LAMBDA(long long t) { route(a, t, false); });
}
