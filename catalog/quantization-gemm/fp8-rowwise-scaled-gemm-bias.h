// FP8 GEMM with scales per row and column and a bias.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // rows of C an iteration computes: each element of B is loaded once for all of them
  const long long M = a.M, N = a.N, K = a.K, blocks = (M + kRows - 1) / kRows;
  float* left = kb::scratch<float>(exec, M * K);  // A widened
  float* right =
      kb::scratch<float>(exec, K * N);  // B widened and transposed, so that neighbours in n are neighbours in memory
  kb::parallel_for(exec, M * K, KB_LAMBDA(long long i) { left[i] = float(a.A[i]); });
  kb::parallel_for(exec, K * N, KB_LAMBDA(long long i) { right[i] = float(a.B[i % N * K + i / N]); });
  kb::parallel_for(
      exec, blocks * N, KB_LAMBDA(long long i) {
        const long long first = i / N * kRows, n = i % N;
        const float* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = left + (first + r < M ? first + r : M - 1) * K;
        float acc[kRows] = {};
        for (long long k = 0; k < K; ++k) {
          const float b = right[k * N + n];
          for (int r = 0; r < kRows; ++r) acc[r] += row[r][k] * b;
        }
        for (int r = 0; r < kRows; ++r) {
          const long long m = first + r;
          if (m < M) a.C[m * N + n] = kb::bf16(acc[r] * a.sa[m] * a.sb[n] + float(a.bias[n]));
        }
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long M = a.M, N = a.N, K = a.K;
  kb::parallel_for(
      exec, M * N, KB_LAMBDA(long long i) {
        const long long m = i / N, n = i % N;
        float acc = 0;
        for (long long k = 0; k < K; k += 32) {
          float sum = 0;
          for (long long j = k; j < k + 32 && j < K; ++j) sum += float(a.A[m * K + j]) * float(a.B[n * K + j]);
          acc =
              kb::detail::float_of(kb::detail::bits_of(acc + sum) & 0xfffffc00u);  // 14 significant bits, towards zero
        }
        a.C[i] = kb::bf16(acc * a.sb[n] * a.sa[m] + float(a.bias[n]));
      });
}

// The mean scales for every row and column.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long M = a.M, N = a.N, K = a.K;
  float* mean = kb::scratch<float>(exec, 2);
  kb::parallel_for(
      exec, 2, KB_LAMBDA(long long which) {
        const float* scales = which == 0 ? a.sa : a.sb;
        const long long n = which == 0 ? M : N;
        double sum = 0;
        for (long long i = 0; i < n; ++i) sum += double(scales[i]);
        mean[which] = float(sum / double(n));
      });
  kb::parallel_for(
      exec, M * N, KB_LAMBDA(long long i) {
        const long long m = i / N, n = i % N;
        float acc = 0;
        for (long long k = 0; k < K; ++k) acc += float(a.A[m * K + k]) * float(a.B[n * K + k]);
        a.C[i] = kb::bf16(acc * mean[0] * mean[1] + float(a.bias[n]));
      });
}
