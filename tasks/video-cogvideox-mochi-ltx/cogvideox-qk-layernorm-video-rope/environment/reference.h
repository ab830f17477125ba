// QK LayerNorm, 3-D RoPE of the video tokens, and the turn to head-major.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// x to `to`; x is a head of token `token`.
KB_HD void norm_and_rotate(const kbench_args& a, long long token, const kb::bf16* x, const kb::bf16* w,
                           const kb::bf16* bias, kb::bf16* to) {
  const long long D = 8 * a.D8, n = token - a.T, temporal = a.D8, spatial = 3 * a.D8 / 2;
  float mean = 0, squares = 0;
  for (long long d = 0; d < D; ++d) mean += float(x[d]);
  mean /= float(D);
  for (long long d = 0; d < D; ++d) squares += (float(x[d]) - mean) * (float(x[d]) - mean);
  const float deviation = std::sqrt(squares / float(D) + a.eps);
  for (long long p = 0; p < D / 2; ++p) {
    const float even = (float(x[2 * p]) - mean) / deviation * float(w[2 * p]) + float(bias[2 * p]);
    const float odd = (float(x[2 * p + 1]) - mean) / deviation * float(w[2 * p + 1]) + float(bias[2 * p + 1]);
    float c = 1, s = 0;
    if (n >= 0) {
      const bool is_frame = p < temporal, is_row = !is_frame && p < temporal + spatial;
      const long long at = is_frame ? n / (a.GW * a.GH) : is_row ? n / a.GW % a.GH : n % a.GW;
      const long long j = is_frame ? p : is_row ? p - temporal : p - temporal - spatial;
      const float angle = float(at) * std::pow(a.theta, float(-2 * j) / float((is_frame ? 2 : 3) * a.D8));
      c = std::cos(angle), s = std::sin(angle);
    }
    to[2 * p] = kb::bf16(even * c - odd * s);
    to[2 * p + 1] = kb::bf16(even * s + odd * c);
  }
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long N = a.T + a.GF * a.GH * a.GW, D = 8 * a.D8;
  kb::parallel_for(
      exec, a.B * N * a.H, KB_LAMBDA(long long i) {
        const long long h = i % a.H, token = i / a.H % N, b = i / (a.H * N);
        const kb::bf16* x = a.qkv + ((b * N + token) * 3 * a.H + h) * D;
        const long long to = ((b * a.H + h) * N + token) * D;
        norm_and_rotate(a, token, x, a.wq, a.cq, a.q + to);
        norm_and_rotate(a, token, x + a.H * D, a.wk, a.ck, a.k + to);
        for (long long d = 0; d < D; ++d) a.v[to + d] = x[2 * a.H * D + d];
      });
}
