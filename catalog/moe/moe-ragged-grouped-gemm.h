// Grouped GEMM over rows that are sorted by expert.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // rows of one expert that an iteration computes: each weight is loaded once for all of them
  const long long H = a.H, N = a.N, E = a.E;
  kb::bf16* turned =
      kb::scratch<kb::bf16>(exec, E * N * H);  // W as [E, H, N]: neighbours in n are neighbours in memory
  kb::parallel_for(
      exec, E * H * N, KB_LAMBDA(long long i) {
        const long long n = i % N, hh = i / N % H, e = i / (N * H);
        turned[i] = a.W[(e * N + n) * H + hh];
      });
  kb::parallel_for(
      exec, (a.R / kRows + E) * N, KB_LAMBDA(long long i) {  // at least as many blocks as all experts have together
        const long long n = i % N;
        long long e = 0, block = i / N;
        for (; e < E; ++e) {
          const long long blocks = (a.offs[e + 1] - a.offs[e] + kRows - 1) / kRows;
          if (block < blocks) break;
          block -= blocks;
        }
        if (e == E) return;
        const long long first = a.offs[e] + block * kRows, end = a.offs[e + 1];
        const kb::bf16* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = a.X + (first + r < end ? first + r : end - 1) * H;
        float sum[kRows] = {};
        for (long long k = 0; k < H; ++k) {
          const float w = float(turned[(e * H + k) * N + n]);
          for (int r = 0; r < kRows; ++r) sum[r] += float(row[r][k]) * w;
        }
        for (int r = 0; r < kRows; ++r)
          if (first + r < end) a.Y[(first + r) * N + n] = kb::bf16(sum[r]);
      });
}

// kbench: private from here

KB_HD void row_by_column(const kbench_args& a, long long r, long long n, long long e) {
  const kb::bf16 *x = a.X + r * a.H, *w = a.W + (e * a.N + n) * a.H;
  float sum = 0;
  for (long long end = a.H; end > 0; end -= 64) {
    float part = 0;
    for (long long k = end > 64 ? end - 64 : 0; k < end; ++k) part = std::fma(float(x[k]), float(w[k]), part);
    sum += part;
  }
  a.Y[r * a.N + n] = kb::bf16(sum);
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.R * a.N, KB_LAMBDA(long long i) {
        long long low = 0, high = a.E;  // offs[low] <= r < offs[high]
        while (high - low > 1) {
          const long long middle = (low + high) / 2;
          (a.offs[middle] <= i / a.N ? low : high) = middle;
        }
        row_by_column(a, i / a.N, i % a.N, low);
      });
}

// Equal groups.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.R * a.N, KB_LAMBDA(long long i) { row_by_column(a, i / a.N, i % a.N, i / a.N * a.E / a.R); });
}
