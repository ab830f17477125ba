// Block-sparse attention by a table of blocks, and the gated coarse output.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline constexpr int kHeadSizeMax = 256, kKeys = 16;  // keys taken together: their scores stay in registers

// A softmax over keys that come in pieces: sum and weight are relative to exp(top).
struct Attention {
  float sum[kHeadSizeMax];
  float top, weight;
};

// Of `count` neighbouring keys and values; q meets k with `scale`.
KB_HD void attend(Attention& state, const kb::bf16* q, const kb::bf16* keys, const kb::bf16* values, long long count,
                  long long D, float scale) {
  for (long long first = 0; first < count; first += kKeys) {
    const int held = int(count - first < kKeys ? count - first : kKeys);
    const kb::bf16 *k = keys + first * D, *v = values + first * D;
    float p[kKeys] = {};
    for (long long d = 0; d < D; ++d) {
      const float x = float(q[d]);
      for (int j = 0; j < kKeys; ++j) p[j] += x * float(k[(j < held ? j : 0) * D + d]);
    }
    float higher = state.top;
    for (int j = 0; j < kKeys; ++j) {
      p[j] = j < held ? p[j] * scale : -INFINITY;
      higher = std::fmax(higher, p[j]);
    }
    const float shrink = std::exp(state.top - higher);
    state.top = higher;
    state.weight *= shrink;
    for (int j = 0; j < kKeys; ++j) {
      p[j] = std::exp(p[j] - higher);
      state.weight += p[j];
    }
    for (long long d = 0; d < D; ++d) {
      float more = 0;
      for (int j = 0; j < kKeys; ++j) more += p[j] * float(v[(j < held ? j : 0) * D + d]);
      state.sum[d] = state.sum[d] * shrink + more;
    }
  }
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const float scale = 1.0f / std::sqrt(float(a.D));
  kb::parallel_for(
      exec, a.H * a.N, KB_LAMBDA(long long i) {
        const long long D = a.D, h = i / a.N, block = i / a.BS;  // of all heads
        Attention state{{}, -INFINITY, 0};
        for (long long m = 0; m < a.M; ++m) {
          const long long first = (h * a.N + a.idx[block * a.M + m] * a.BS) * D;
          attend(state, a.q + i * D, a.k + first, a.v + first, a.BS, D, scale);
        }
        for (long long d = 0; d < D; ++d)
          a.o[i * D + d] = kb::bf16(state.sum[d] / state.weight + float(a.gc[i * D + d]) * float(a.oc[block * D + d]));
      });
}
