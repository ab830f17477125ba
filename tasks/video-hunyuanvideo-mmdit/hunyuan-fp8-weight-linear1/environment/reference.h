// Linear layer with FP8 weights; the second part of its output through GELU.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

KB_HD float gelu(float t) { return 0.5f * t * (1 + std::tanh(0.797884561f * (t + 0.044715f * t * t * t))); }

// z[m,n], in fp32, to where it belongs.
KB_HD void store(const kbench_args& a, long long m, long long n, float z) {
  if (n < 3 * a.C)
    a.qkv[m * 3 * a.C + n] = kb::bf16(z);
  else
    a.g[m * a.FF + n - 3 * a.C] = kb::bf16(gelu(float(kb::bf16(z))));
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // rows of z an iteration computes: each weight is loaded once for all of them
  const long long M = a.M, K = a.C, N = 3 * a.C + a.FF, blocks = (M + kRows - 1) / kRows;
  kb::bf16* w = kb::scratch<kb::bf16>(exec, K * N);  // [K, N]: neighbours in n are neighbours in memory
  kb::parallel_for(
      exec, K * N, KB_LAMBDA(long long i) {
        const long long n = i % N;
        w[i] = kb::bf16(float(a.w8[n * K + i / N]) * a.ws[n]);
      });
  kb::parallel_for(
      exec, blocks * N, KB_LAMBDA(long long i) {
        const long long first = i / N * kRows, n = i % N;
        const kb::bf16* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = a.x + (first + r < M ? first + r : M - 1) * K;
        float sum[kRows] = {};
        for (long long k = 0; k < K; ++k) {
          const float weight = float(w[k * N + n]);
          for (int r = 0; r < kRows; ++r) sum[r] += float(row[r][k]) * weight;
        }
        for (int r = 0; r < kRows; ++r)
          if (first + r < M) store(a, first + r, n, float(a.b1[n]) + sum[r]);
      });
}
