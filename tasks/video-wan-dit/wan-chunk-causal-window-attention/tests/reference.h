// Chunk-causal attention in a window of chunks, with chunk 0 as an anchor.
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
      exec, a.B * a.H * a.NC * a.CS, KB_LAMBDA(long long i) {
        const long long D = a.D, N = a.NC * a.CS, c = i % N / a.CS, begin = c < a.WC ? 0 : c - a.WC + 1;
        const kb::bf16 *q = a.q + i * D, *k = a.k + i / N * N * D, *v = a.v + i / N * N * D;
        Attention state{{}, -INFINITY, 0};
        if (c >= a.WC) attend(state, q, k, v, a.CS, D, scale);
        attend(state, q, k + begin * a.CS * D, v + begin * a.CS * D, (c + 1 - begin) * a.CS, D, scale);
        for (long long d = 0; d < D; ++d) a.o[i * D + d] = kb::bf16(state.sum[d] / state.weight);
      });
}

// kbench: private from here

// The same in tiles of 64 keys from the last to the first, the probabilities rounded to bf16 before they meet the
// values.
KB_HD void attend_in_tiles(Attention& state, const kb::bf16* q, const kb::bf16* keys, const kb::bf16* values,
                           long long count, long long D, float scale) {
  constexpr int kTile = 64;
  float p[kTile];
  for (long long end = count; end > 0; end -= kTile) {
    const long long first = end > kTile ? end - kTile : 0;
    float higher = state.top;
    for (long long s = first; s < end; ++s) {
      float sum = 0;
      for (long long d = D - 1; d >= 0; --d) sum += float(q[d]) * float(keys[s * D + d]);
      p[s - first] = sum * scale;
      higher = std::fmax(higher, p[s - first]);
    }
    const float shrink = std::exp(state.top - higher);
    state.top = higher;
    state.weight *= shrink;
    for (long long d = 0; d < D; ++d) state.sum[d] *= shrink;
    for (long long s = first; s < end; ++s) {
      const float e = std::exp(p[s - first] - higher), rounded = float(kb::bf16(e));
      state.weight += e;
      for (long long d = 0; d < D; ++d) state.sum[d] += rounded * float(values[s * D + d]);
    }
  }
}

KB_HD void query(const kbench_args& a, long long i, bool by_chunks) {
  const long long D = a.D, N = a.NC * a.CS, n = i % N, c = n / a.CS, begin = c < a.WC ? 0 : c - a.WC + 1;
  const float scale = 1 / std::sqrt(float(D));
  const kb::bf16 *q = a.q + i * D, *k = a.k + i / N * N * D, *v = a.v + i / N * N * D;
  Attention state{{}, -INFINITY, 0};
  for (long long chunk = c; chunk >= begin; --chunk) {
    const long long first = chunk * a.CS, seen = by_chunks || chunk < c ? a.CS : n + 1 - first;
    attend_in_tiles(state, q, k + first * D, v + first * D, seen, D, scale);
  }
  if (by_chunks && begin > 0) attend_in_tiles(state, q, k, v, a.CS, D, scale);
  for (long long d = 0; d < D; ++d) a.o[i * D + d] = kb::bf16(state.sum[d] / state.weight);
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B * a.H * a.NC * a.CS, KB_LAMBDA(long long i) { query(a, i, true); });
}

// Causal by token, without the anchor.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B * a.H * a.NC * a.CS, KB_LAMBDA(long long i) { query(a, i, false); });
}
