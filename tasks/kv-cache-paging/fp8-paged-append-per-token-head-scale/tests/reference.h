// Dynamic FP8 quantised paged append, one scale per token and head.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// One head of one token.
KB_HD void append_head(const kb::bf16* from, long long D, kb::e4m3* to, float* scale) {
  float amax = 0;
  for (long long d = 0; d < D; ++d) amax = std::fmax(amax, std::fabs(float(from[d])));
  const float sc = std::fmax(amax, 1e-6f) / 448.0f;
  for (long long d = 0; d < D; ++d) to[d] = kb::e4m3(float(from[d]) / sc);
  *scale = sc;
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N * a.Hk, KB_LAMBDA(long long i) {
        const long long slot = a.slot[i / a.Hk];
        if (slot < 0) return;
        const long long at = slot * a.Hk + i % a.Hk;  // [slot // BS, slot % BS, h] of a contiguous cache
        append_head(a.k + i * a.D, a.D, a.kc + at * a.D, a.ks + at);
        append_head(a.v + i * a.D, a.D, a.vc + at * a.D, a.vs + at);
      });
}

// kbench: private from here

KB_HD void append_head_by_reciprocal(const kb::bf16* from, long long D, kb::e4m3* to, float* scale) {
  float even = 1e-6f, odd = 1e-6f;
  for (long long d = 0; d < D; d += 2) even = std::fmax(even, std::fabs(float(from[d])));
  for (long long d = 1; d < D; d += 2) odd = std::fmax(odd, std::fabs(float(from[d])));
  const float amax = std::fmax(even, odd);
  const float inverse = 448.0f / amax;
  for (long long d = 0; d < D; ++d) to[d] = kb::e4m3(float(from[d]) * inverse);
  *scale = amax * (1.0f / 448.0f);
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N * a.Hk, KB_LAMBDA(long long i) {
        const long long slot = a.slot[i / a.Hk];
        if (slot < 0) return;
        const long long at = slot * a.Hk + i % a.Hk;
        append_head_by_reciprocal(a.k + i * a.D, a.D, a.kc + at * a.D, a.ks + at);
        append_head_by_reciprocal(a.v + i * a.D, a.D, a.vc + at * a.D, a.vs + at);
      });
}

// A static scale of 1.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N * a.Hk, KB_LAMBDA(long long i) {
        const long long slot = a.slot[i / a.Hk];
        if (slot < 0) return;
        const long long at = slot * a.Hk + i % a.Hk;
        a.ks[at] = a.vs[at] = 1;
        for (long long d = 0; d < a.D; ++d) {
          a.kc[at * a.D + d] = kb::e4m3(float(a.k[i * a.D + d]));
          a.vc[at * a.D + d] = kb::e4m3(float(a.v[i * a.D + d]));
        }
      });
}
