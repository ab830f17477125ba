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

// Query i over the blocks of its list, or over those around its own.
KB_HD void query(const kbench_args& a, long long i, bool listed) {
  const long long D = a.D, blocks = a.N / a.BS, h = i / a.N, block = i / a.BS;
  Attention state{{}, -INFINITY, 0};
  for (long long m = a.M - 1; m >= 0; --m) {
    const long long which = listed ? a.idx[block * a.M + m] : (block % blocks + m + blocks - a.M / 2) % blocks;
    const long long first = (h * a.N + which * a.BS) * D;
    attend_in_tiles(state, a.q + i * D, a.k + first, a.v + first, a.BS, D, 1 / std::sqrt(float(D)));
  }
  for (long long d = 0; d < D; ++d) {
    const float coarse = float(a.gc[i * D + d]) * float(a.oc[block * D + d]);
    a.o[i * D + d] = kb::bf16(std::fma(coarse, state.weight, state.sum[d]) / state.weight);
  }
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.H * a.N, KB_LAMBDA(long long i) { query(a, i, true); });
}

// The blocks around its own.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.H * a.N, KB_LAMBDA(long long i) { query(a, i, false); });
}
