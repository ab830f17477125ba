// GEMV over MXFP4 weights.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 16;  // of X, that meet each decoded weight
  const long long M = a.M, N = a.N, K = a.K;
  kb::parallel_for(
      exec, a.L * N, KB_LAMBDA(long long i) {
        const long long l = i / N, n = i % N;
        for (long long first = 0; first < M; first += kRows) {
          const int rows = int(M - first < kRows ? M - first : kRows);
          const kb::bf16* x = a.X + (l * M + first) * K;
          float sum[kRows] = {};
          for (long long k = 0; k < K; k += 2) {
            const kb::e2m1x2 w = a.W[(i * K + k) / 2];
            const float scale = float(a.S[(i * K + k) / 32]), even = w.low() * scale, odd = w.high() * scale;
            for (int m = 0; m < rows; ++m) {
              sum[m] += float(x[m * K + k]) * even;
              sum[m] += float(x[m * K + k + 1]) * odd;
            }
          }
          for (int m = 0; m < rows; ++m) a.Y[(l * M + first + m) * N + n] = kb::bf16(sum[m]);
        }
      });
}
