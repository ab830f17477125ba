// A matrix product whose inner dimension is split over two GPUs, its rows scattered to them, with a residual.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// One GPU's operands in fp32. w is transposed, so that neighbours in n are neighbours in memory.
struct Operands {
  const float* x;
  const float* w;
};
inline Operands widened(const kbench_args& a, kbench_exec& exec, int gpu) {
  const long long M = a.M, N = a.N, K = a.KL;
  float* x = kb::scratch<float>(exec, M * K);
  float* w = kb::scratch<float>(exec, K * N);
  kb::parallel_for(exec, M * K, KB_LAMBDA(long long i) { x[i] = float(a.x[gpu][i]); });
  kb::parallel_for(exec, K * N, KB_LAMBDA(long long i) { w[i] = float(a.w[gpu][i % N * K + i / N]); });
  return {x, w};
}

constexpr int kRows = 8;  // rows of the product an iteration computes: each element of w is loaded once for all of them

// Rows m to m + kRows of column n, added to what is there.
KB_HD void add_products(const kbench_args& a, const Operands& of, long long m, long long n, float* sums) {
  const float* row[kRows];
  for (int r = 0; r < kRows; ++r) row[r] = of.x + (m + r < a.M ? m + r : a.M - 1) * a.KL;
  for (long long k = 0; k < a.KL; ++k) {
    const float w = of.w[k * a.N + n];
    for (int r = 0; r < kRows; ++r) sums[r] += row[r][k] * w;
  }
}

KB_HD void put(const kbench_args& a, long long m, long long n, float sum) {
  if (m >= a.M) return;
  const long long gpu = m / a.MH, i = m % a.MH * a.N + n;
  a.out[gpu][i] = kb::bf16(sum + float(a.res[gpu][i]));
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const Operands first = widened(a, exec, 0), second = widened(a, exec, 1);
  const long long blocks = (a.M + kRows - 1) / kRows;
  kb::parallel_for(
      exec, blocks * a.N, KB_LAMBDA(long long i) {
        const long long m = i / a.N * kRows, n = i % a.N;
        float sums[kRows] = {};
        add_products(a, first, m, n, sums);
        add_products(a, second, m, n, sums);
        for (int r = 0; r < kRows; ++r) put(a, m + r, n, sums[r]);
      });
}
