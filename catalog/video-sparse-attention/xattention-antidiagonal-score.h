// Antidiagonal scores of blocks.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // groups of queries an iteration computes: each key is loaded once for all of them
  const long long s = a.s, D = a.D, K = s * D, groups = a.N / s, row_blocks = (groups + kRows - 1) / kRows;
  const long long wide = a.BS / s, blocks = a.N / a.BS;
  const float scale = 1 / (std::sqrt(float(D)) * float(s));
  kb::bf16* turned = kb::scratch<kb::bf16>(exec, a.H * K * groups);  // keys, reversed in their group: [h, r*D + d, j]
  float* A = kb::scratch<float>(exec, a.H * groups * groups);
  float* top = kb::scratch<float>(exec, a.H * groups);
  float* weight = kb::scratch<float>(exec, a.H * groups);
  kb::parallel_for(
      exec, a.H * K * groups, KB_LAMBDA(long long n) {
        const long long j = n % groups, at = n / groups % K, h = n / (groups * K);
        turned[n] = a.k[(h * a.N + j * s + s - 1 - at / D) * D + at % D];
      });
  kb::parallel_for(
      exec, a.H * row_blocks * groups, KB_LAMBDA(long long n) {
        const long long j = n % groups, first = n / groups % row_blocks * kRows, h = n / (groups * row_blocks);
        const kb::bf16* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = a.q + (h * groups + (first + r < groups ? first + r : groups - 1)) * K;
        float sum[kRows] = {};
        for (long long at = 0; at < K; ++at) {
          const float k = float(turned[(h * K + at) * groups + j]);
          for (int r = 0; r < kRows; ++r) sum[r] += float(row[r][at]) * k;
        }
        for (int r = 0; r < kRows && first + r < groups; ++r) A[(h * groups + first + r) * groups + j] = sum[r] * scale;
      });
  kb::parallel_for(
      exec, a.H * groups, KB_LAMBDA(long long i) {
        float highest = -INFINITY;
        double sum = 0;
        for (long long j = 0; j < groups; ++j) highest = std::fmax(highest, A[i * groups + j]);
        for (long long j = 0; j < groups; ++j) sum += double(std::exp(A[i * groups + j] - highest));
        top[i] = highest;
        weight[i] = float(sum);
      });
  kb::parallel_for(
      exec, a.H * blocks * blocks, KB_LAMBDA(long long n) {
        const long long b = n % blocks, first = n / blocks * wide;  // the first group of the block, of all heads
        float sum = 0;
        for (long long i = first; i < first + wide; ++i)
          for (long long j = b * wide; j < (b + 1) * wide; ++j) sum += std::exp(A[i * groups + j] - top[i]) / weight[i];
        a.out[n] = sum;
      });
}

// kbench: private from here

KB_HD float towards_zero(double x) {
  const float nearest = float(x);
  return std::fabs(double(nearest)) > std::fabs(x) ? kb::detail::float_of(kb::detail::bits_of(nearest) - 1) : nearest;
}

inline void scores(const kbench_args& a, kbench_exec& exec, bool reversed) {
  constexpr float kLog2e = 1.44269504f;
  const long long s = a.s, D = a.D, K = s * D, groups = a.N / s, wide = a.BS / s, blocks = a.N / a.BS;
  const float scale = kLog2e / (std::sqrt(float(D)) * float(s));
  float* A = kb::scratch<float>(exec, a.H * groups * groups);     // times log2(e)
  float* sums = kb::scratch<float>(exec, a.H * groups * blocks);  // of P, per group of queries and block of keys
  kb::parallel_for(
      exec, a.H * groups * groups, KB_LAMBDA(long long n) {
        const long long j = n / groups % groups, i = n % groups, h = n / (groups * groups);
        const kb::bf16 *q = a.q + (h * groups + i) * K, *k = a.k + (h * groups + j) * K;
        float sum = 0;
        for (long long at = 0; at < K; at += 16) {
          double part = 0;
          for (long long e = at; e < at + 16 && e < K; ++e) {
            const long long r = reversed ? s - 1 - e / D : e / D;
            part += double(float(q[e])) * double(float(k[r * D + e % D]));
          }
          sum = towards_zero(double(sum) + part);
        }
        A[(h * groups + i) * groups + j] = sum * scale;
      });
  kb::parallel_for(
      exec, a.H * groups, KB_LAMBDA(long long i) {
        float top = -INFINITY, weight = 0;
        for (long long b = 0; b < blocks; ++b) {
          const float* row = A + i * groups + b * wide;
          float higher = top, part = 0;
          for (long long j = 0; j < wide; ++j) higher = std::fmax(higher, row[j]);
          for (long long j = 0; j < wide; ++j) part += std::exp2(row[j] - higher);
          const float shrink = std::exp2(top - higher);
          for (long long before = 0; before < b; ++before) sums[i * blocks + before] *= shrink;
          sums[i * blocks + b] = part;
          weight = weight * shrink + part;
          top = higher;
        }
        for (long long b = 0; b < blocks; ++b) sums[i * blocks + b] *= 1 / weight;
      });
  kb::parallel_for(
      exec, a.H * blocks * blocks, KB_LAMBDA(long long n) {
        float sum = 0;
        for (long long i = n / blocks * wide; i < (n / blocks + 1) * wide; ++i) sum += sums[i * blocks + n % blocks];
        a.out[n] = sum;
      });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { scores(a, exec, true); }

// The main diagonal.
inline void control(const kbench_args& a, kbench_exec& exec) { scores(a, exec, false); }
