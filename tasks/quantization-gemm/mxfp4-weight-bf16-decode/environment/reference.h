// GEMV over MXFP4 weights.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // of X, that meet each decoded weight
  const long long M = a.M, N = a.N, K = a.K;
  kb::parallel_for(
      exec, a.L * N, KB_LAMBDA(long long i) {
        const long long l = i / N, n = i % N;
        for (long long first = 0; first < M; first += kRows) {
          const kb::bf16* row[kRows];
          for (int r = 0; r < kRows; ++r) row[r] = a.X + (l * M + (first + r < M ? first + r : M - 1)) * K;
          float sum[kRows] = {};
          for (long long k = 0; k < K; k += 2) {
            const kb::e2m1x2 w = a.W[(i * K + k) / 2];
            const float scale = float(a.S[(i * K + k) / 32]), even = w.low() * scale, odd = w.high() * scale;
            for (int r = 0; r < kRows; ++r) {
              sum[r] += float(row[r][k]) * even;
              sum[r] += float(row[r][k + 1]) * odd;
            }
          }
          for (int r = 0; r < kRows; ++r)
            if (first + r < M) a.Y[(l * M + first + r) * N + n] = kb::bf16(sum[r]);
        }
      });
}
