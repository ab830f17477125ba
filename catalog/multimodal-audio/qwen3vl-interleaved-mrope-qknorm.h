// QK RMS norm and interleaved multimodal RoPE, in place.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

KB_HD long long axis_of(const kbench_args& a, long long i) {
  if (i % 3 == 1 && i < 3 * a.s1) return 1;
  if (i % 3 == 2 && i < 3 * a.s2) return 2;
  return 0;
}

KB_HD void norm_and_rotate(const kbench_args& a, long long n, const float* g, kb::bf16* x) {
  const long long D = a.D, half = D / 2;
  float sum = 0;
  for (long long d = 0; d < D; ++d) sum += float(x[d]) * float(x[d]);
  const float rms = std::sqrt(sum / float(D) + a.eps);
  for (long long i = 0; i < half; ++i) {
    const float angle = float(a.pos[axis_of(a, i) * a.N + n]) * a.inv[i];
    const float c = std::cos(angle), s = std::sin(angle);
    const float low = float(x[i]) / rms * g[i], high = float(x[i + half]) / rms * g[i + half];
    x[i] = kb::bf16(low * c - high * s);
    x[i + half] = kb::bf16(high * c + low * s);
  }
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N * a.Hq, KB_LAMBDA(long long i) { norm_and_rotate(a, i / a.Hq, a.gq, a.q + i * a.D); });
  kb::parallel_for(exec, a.N * a.Hk, KB_LAMBDA(long long i) { norm_and_rotate(a, i / a.Hk, a.gk, a.k + i * a.D); });
}

// kbench: private from here

KB_HD long long section_of(const kbench_args& a, long long i) {
  const long long time = a.D / 2 - a.s1 - a.s2;
  return i < time ? 0 : i < time + a.s1 ? 1 : 2;
}

KB_HD void norm_and_rotate_otherwise(const kbench_args& a, long long n, const float* g, kb::bf16* x, bool interleaved) {
  const long long D = a.D, half = D / 2;
  float strand[4] = {};
  for (long long d = 0; d < D; ++d) strand[d % 4] = std::fma(float(x[d]), float(x[d]), strand[d % 4]);
  const float inverse = 1 / std::sqrt((strand[0] + strand[2] + (strand[1] + strand[3])) / float(D) + a.eps);
  for (long long i = 0; i < half; ++i) {
    const float angle = float(a.pos[(interleaved ? axis_of(a, i) : section_of(a, i)) * a.N + n]) * a.inv[i];
    const float c = float(std::cos(double(angle))), s = float(std::sin(double(angle)));
    const float low = float(x[i]) * (inverse * g[i]), high = float(x[i + half]) * (inverse * g[i + half]);
    x[i] = kb::bf16(std::fma(low, c, -high * s));
    x[i + half] = kb::bf16(std::fma(high, c, low * s));
  }
}

inline void all_heads_otherwise(const kbench_args& a, kbench_exec& exec, bool interleaved) {
  kb::parallel_for(
      exec, a.N * (a.Hq + a.Hk), KB_LAMBDA(long long i) {
        const long long queries = a.N * a.Hq, key = i - queries;
        if (i < queries)
          norm_and_rotate_otherwise(a, i / a.Hq, a.gq, a.q + i * a.D, interleaved);
        else
          norm_and_rotate_otherwise(a, key / a.Hk, a.gk, a.k + key * a.D, interleaved);
      });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { all_heads_otherwise(a, exec, true); }

// Contiguous sections.
inline void control(const kbench_args& a, kbench_exec& exec) { all_heads_otherwise(a, exec, false); }
