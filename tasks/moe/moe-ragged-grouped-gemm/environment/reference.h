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
