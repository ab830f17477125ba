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
