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

// kbench: private from here

// Row i of all the layers' weights with the scale of block b taken from scale(b).
template <class Scale>
KB_HD void decode_row(const kbench_args& a, long long i, const Scale& scale) {
  constexpr long long kBlock = 256;
  const long long l = i / a.N, n = i % a.N;
  for (long long m = 0; m < a.M; ++m) {
    float sum = 0;
    for (long long first = 0; first < a.K; first += kBlock) {
      float part = 0;
      for (long long k = first; k < first + kBlock && k < a.K; ++k) {
        const kb::e2m1x2 pair = a.W[(i * a.K + k) / 2];
        const kb::bf16 w = kb::bf16((k % 2 ? pair.high() : pair.low()) * scale(k / 32));
        part += float(w) * float(a.X[(l * a.M + m) * a.K + k]);
      }
      sum += part;
    }
    a.Y[(l * a.M + m) * a.N + n] = kb::bf16(sum);
  }
}

struct OwnScale {
  const kb::e8m0* scales;
  KB_HD float operator()(long long block) const { return float(scales[block]); }
};
struct OneScale {
  float scale;
  KB_HD float operator()(long long) const { return scale; }
};

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.L * a.N, KB_LAMBDA(long long i) { decode_row(a, i, OwnScale{a.S + i * (a.K / 32)}); });
}

// The mean exponent of a row.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.L * a.N, KB_LAMBDA(long long i) {
        const long long blocks = a.K / 32;
        long long sum = 0;
        for (long long b = 0; b < blocks; ++b) sum += a.S[i * blocks + b].bits;
        kb::e8m0 mean;
        mean.bits = std::uint8_t((sum + blocks / 2) / blocks);
        decode_row(a, i, OneScale{float(mean)});
      });
}
