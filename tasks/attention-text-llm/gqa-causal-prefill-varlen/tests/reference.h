// Causal grouped-query attention over packed sequences.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline constexpr int kHeadSizeMax = 256;

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kKeys = 16;  // keys taken together: their scores stay in registers
  const float scale = 1.0f / std::sqrt(float(a.D));
  kb::parallel_for(
      exec, a.HQ * a.TT, KB_LAMBDA(long long i) {
        const long long h = i / a.TT, t = i % a.TT, hk = h / (a.HQ / a.HK), D = a.D, stride = a.HK * D;
        long long n = 0;
        while (t >= a.cu[n + 1]) ++n;
        const kb::bf16* q = a.q + (t * a.HQ + h) * D;
        float sum[kHeadSizeMax] = {};  // of exp(score - top) * v
        float top = -INFINITY, weight = 0;
        for (long long first = a.cu[n]; first <= t; first += kKeys) {
          const int keys = int(t + 1 - first < kKeys ? t + 1 - first : kKeys);
          const kb::bf16* k = a.k + first * stride + hk * D;
          const kb::bf16* v = a.v + first * stride + hk * D;
          float p[kKeys] = {};
          for (long long d = 0; d < D; ++d) {
            const float x = float(q[d]);
            for (int j = 0; j < kKeys; ++j) p[j] += x * float(k[(j < keys ? j : 0) * stride + d]);
          }
          float higher = top;
          for (int j = 0; j < kKeys; ++j) {
            p[j] = j < keys ? p[j] * scale : -INFINITY;
            higher = std::fmax(higher, p[j]);
          }
          const float shrink = std::exp(top - higher);
          top = higher;
          weight *= shrink;
          for (int j = 0; j < kKeys; ++j) {
            p[j] = std::exp(p[j] - top);
            weight += p[j];
          }
          for (long long d = 0; d < D; ++d) {
            float more = 0;
            for (int j = 0; j < kKeys; ++j) more += p[j] * float(v[(j < keys ? j : 0) * stride + d]);
            sum[d] = sum[d] * shrink + more;
          }
        }
        for (long long d = 0; d < D; ++d) a.o[(t * a.HQ + h) * D + d] = kb::bf16(sum[d] / weight);
        a.lse[t * a.HQ + h] = top + std::log(weight);
      });
}

// kbench: private from here

// Tiles of 64 keys from `begin` to `t`, P rounded to bf16 before it meets V, as tensor cores take it.
KB_HD void attend_in_tiles(const kbench_args& a, long long t, long long h, long long begin) {
  constexpr int kTile = 64;
  const long long hk = h / (a.HQ / a.HK), D = a.D, stride = a.HK * D;
  const kb::bf16* q = a.q + (t * a.HQ + h) * D;
  float sum[kHeadSizeMax] = {}, p[kTile];
  float top = -INFINITY, weight = 0;
  for (long long first = begin; first <= t; first += kTile) {
    const int keys = int(t + 1 - first < kTile ? t + 1 - first : kTile);
    const kb::bf16* k = a.k + first * stride + hk * D;
    const kb::bf16* v = a.v + first * stride + hk * D;
    float higher = top;
    for (int j = 0; j < keys; ++j) {
      p[j] = 0;
      for (long long d = D - 1; d >= 0; --d) p[j] += float(q[d]) * float(k[j * stride + d]);
      p[j] /= std::sqrt(float(D));
      higher = std::fmax(higher, p[j]);
    }
    const float shrink = std::exp(top - higher);
    top = higher;
    weight *= shrink;
    for (long long d = 0; d < D; ++d) sum[d] *= shrink;
    for (int j = 0; j < keys; ++j) {
      const float e = std::exp(p[j] - top), rounded = float(kb::bf16(e));
      weight += e;
      for (long long d = 0; d < D; ++d) sum[d] += rounded * float(v[j * stride + d]);
    }
  }
  for (long long d = 0; d < D; ++d) a.o[(t * a.HQ + h) * D + d] = kb::bf16(sum[d] / weight);
  a.lse[t * a.HQ + h] = top + std::log(weight);
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.HQ * a.TT, KB_LAMBDA(long long i) {
        const long long h = i / a.TT, t = i % a.TT;
        long long n = 0;
        while (t >= a.cu[n + 1]) ++n;
        attend_in_tiles(a, t, h, a.cu[n]);
      });
}

// Causal over the whole pack, whatever the sequence.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.HQ * a.TT, KB_LAMBDA(long long i) { attend_in_tiles(a, i % a.TT, i / a.TT, 0); });
}
