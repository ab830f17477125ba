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

// kbench: private from here

// Frame, row and column of a token are (f, r, c); f < 0: not rotated.
KB_HD void norm_and_rotate_otherwise(const kbench_args& a, const double* position, const kb::bf16* x, const kb::bf16* w,
                                     const kb::bf16* bias, kb::bf16* to) {
  const long long D = 8 * a.D8, first[4] = {0, a.D8, a.D8 + 3 * a.D8 / 2, D / 2};
  double moment1 = 0, moment2 = 0;
  for (long long d = 0; d < D; ++d)
    moment1 += double(float(x[d])), moment2 += double(float(x[d])) * double(float(x[d]));
  const double mean = moment1 / double(D);
  const float inverse = float(1 / std::sqrt(moment2 / double(D) - mean * mean + double(a.eps)));
  for (int axis = 0; axis < 3; ++axis)
    for (long long p = first[axis]; p < first[axis + 1]; ++p) {
      const double rate =
          std::exp(-2 * double(p - first[axis]) / double((axis == 0 ? 2 : 3) * a.D8) * std::log(double(a.theta)));
      const float c = position[0] < 0 ? 1.0f : float(std::cos(position[axis] * rate));
      const float s = position[0] < 0 ? 0.0f : float(std::sin(position[axis] * rate));
      const float even = std::fma(float(x[2 * p]) - float(mean), inverse * float(w[2 * p]), float(bias[2 * p]));
      const float odd =
          std::fma(float(x[2 * p + 1]) - float(mean), inverse * float(w[2 * p + 1]), float(bias[2 * p + 1]));
      to[2 * p] = kb::bf16(std::fma(even, c, -odd * s));
      to[2 * p + 1] = kb::bf16(std::fma(odd, c, even * s));
    }
}

inline void heads_otherwise(const kbench_args& a, kbench_exec& exec, bool rotate_text) {
  const long long N = a.T + a.GF * a.GH * a.GW, D = 8 * a.D8;
  kb::parallel_for(
      exec, a.B * a.H * N, KB_LAMBDA(long long i) {
        const long long token = i % N, h = i / N % a.H, b = i / (N * a.H), n = token - a.T;
        const kb::bf16* x = a.qkv + ((b * N + token) * 3 * a.H + h) * D;
        const bool text = n < 0;
        const double position[3] = {text ? (rotate_text ? 0.0 : -1.0) : double(n / (a.GW * a.GH)),
                                    text ? 0.0 : double(n / a.GW % a.GH), text ? double(token) : double(n % a.GW)};
        norm_and_rotate_otherwise(a, position, x, a.wq, a.cq, a.q + i * D);
        norm_and_rotate_otherwise(a, position, x + a.H * D, a.wk, a.ck, a.k + i * D);
        for (long long d = 0; d < D; ++d) a.v[i * D + d] = x[2 * a.H * D + d];
      });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { heads_otherwise(a, exec, false); }

// Text is rotated too.
inline void control(const kbench_args& a, kbench_exec& exec) { heads_otherwise(a, exec, true); }
