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

// kbench: private from here

// Cluster by cluster; `forward`: tokens of a cluster in their own order.
inline void gather_clusters(const kbench_args& a, kbench_exec& exec, bool forward) {
  const long long N = a.N, K = a.K, D = a.D;
  kb::parallel_for(
      exec, a.H * K, KB_LAMBDA(long long i) {
        const long long h = i / K, cluster = i % K;
        long long before = 0, size = 0;
        for (long long n = 0; n < N; ++n) {
          before += a.lab[h * N + n] < cluster;
          size += a.lab[h * N + n] == cluster;
        }
        a.off[h * (K + 1) + cluster] = std::int32_t(before);
        if (cluster == K - 1) a.off[h * (K + 1) + K] = std::int32_t(N);
        long long taken = 0;
        for (long long n = 0; n < N; ++n) {
          if (a.lab[h * N + n] != cluster) continue;
          const long long m = h * N + before + (forward ? taken : size - 1 - taken);
          ++taken;
          a.perm[m] = std::int32_t(n);
          for (long long d = 0; d < D; ++d) {
            a.kp[m * D + d] = a.k[(h * N + n) * D + d];
            a.vp[m * D + d] = a.v[(h * N + n) * D + d];
          }
        }
      });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { gather_clusters(a, exec, true); }

// Not stable: the last token of a cluster first.
inline void control(const kbench_args& a, kbench_exec& exec) { gather_clusters(a, exec, false); }
