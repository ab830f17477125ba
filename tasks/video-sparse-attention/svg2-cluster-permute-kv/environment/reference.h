// Tokens sorted by cluster, stably, and their keys and values moved along.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kTokens = 256;  // counted by one iteration
  const long long N = a.N, K = a.K, chunks = (N + kTokens - 1) / kTokens;
  std::int32_t* place = kb::scratch<std::int32_t>(exec, a.H * chunks * K);  // [h, chunk, cluster]
  kb::parallel_for(
      exec, a.H * chunks, KB_LAMBDA(long long i) {
        const long long h = i / chunks, first = i % chunks * kTokens;
        for (long long j = 0; j < K; ++j) place[i * K + j] = 0;
        for (long long n = first; n < first + kTokens && n < N; ++n) ++place[i * K + a.lab[h * N + n]];
      });
  kb::parallel_for(
      exec, a.H * K, KB_LAMBDA(long long i) {  // from counts to places inside the cluster
        std::int32_t sum = 0;
        for (long long chunk = 0; chunk < chunks; ++chunk) {
          std::int32_t& at = place[(i / K * chunks + chunk) * K + i % K];
          const std::int32_t count = at;
          at = sum;
          sum += count;
        }
        a.off[i / K * (K + 1) + i % K + 1] = sum;
      });
  kb::parallel_for(
      exec, a.H, KB_LAMBDA(long long h) {
        a.off[h * (K + 1)] = 0;
        for (long long j = 0; j < K; ++j) a.off[h * (K + 1) + j + 1] += a.off[h * (K + 1) + j];
      });
  kb::parallel_for(
      exec, a.H * chunks, KB_LAMBDA(long long i) {
        const long long h = i / chunks, first = i % chunks * kTokens;
        for (long long n = first; n < first + kTokens && n < N; ++n) {
          const std::int32_t label = a.lab[h * N + n];
          a.perm[h * N + a.off[h * (K + 1) + label] + place[i * K + label]++] = std::int32_t(n);
        }
      });
  kb::parallel_for(
      exec, a.H * N * a.D, KB_LAMBDA(long long i) {
        const long long from = (i / (N * a.D) * N + a.perm[i / a.D]) * a.D + i % a.D;
        a.kp[i] = a.k[from];
        a.vp[i] = a.v[from];
      });
}
