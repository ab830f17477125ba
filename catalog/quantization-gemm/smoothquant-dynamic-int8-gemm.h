// SmoothQuant: smoothing, dynamic INT8 quantisation, INT8 GEMM.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // rows of Y an iteration computes: each weight is loaded once for all of them
  const long long M = a.M, N = a.N, K = a.K, blocks = (M + kRows - 1) / kRows;
  float* scale = kb::scratch<float>(exec, M);
  std::int8_t* left = kb::scratch<std::int8_t>(exec, M * K);
  std::int8_t* right = kb::scratch<std::int8_t>(exec, K * N);  // W turned: neighbours in n are neighbours in memory
  kb::parallel_for(
      exec, M, KB_LAMBDA(long long m) {
        float amax = 0;
        for (long long k = 0; k < K; ++k) amax = std::fmax(amax, std::fabs(float(a.X[m * K + k]) / a.smooth[k]));
        scale[m] = amax / 127;
      });
  kb::parallel_for(
      exec, M * K, KB_LAMBDA(long long i) {
        const float q = std::rint(float(a.X[i]) / a.smooth[i % K] / scale[i / K]);
        left[i] = std::int8_t(std::fmin(std::fmax(q, -127.0f), 127.0f));
      });
  kb::parallel_for(exec, K * N, KB_LAMBDA(long long i) { right[i] = a.W[i % N * K + i / N]; });
  kb::parallel_for(
      exec, blocks * N, KB_LAMBDA(long long i) {
        const long long first = i / N * kRows, n = i % N;
        const std::int8_t* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = left + (first + r < M ? first + r : M - 1) * K;
        int acc[kRows] = {};
        for (long long k = 0; k < K; ++k) {
          const int w = right[k * N + n];
          for (int r = 0; r < kRows; ++r) acc[r] += row[r][k] * w;
        }
        for (int r = 0; r < kRows; ++r)
          if (first + r < M)
            a.Y[(first + r) * N + n] = kb::f16(float(acc[r]) * scale[first + r] * a.ws[n] + float(a.bias[n]));
      });
}

// kbench: private from here

inline void quantised_gemm(const kbench_args& a, kbench_exec& exec, bool smooth) {
  const long long N = a.N, K = a.K;
  std::int8_t* left = kb::scratch<std::int8_t>(exec, a.M * K);
  float* scale = kb::scratch<float>(exec, a.M);
  kb::parallel_for(
      exec, a.M, KB_LAMBDA(long long m) {
        float amax = 0;
        for (long long k = 0; k < K; ++k)
          amax = std::fmax(amax, std::fabs(float(a.X[m * K + k]) * (smooth ? 1 / a.smooth[k] : 1.0f)));
        const float inverse = 127 / amax;
        for (long long k = 0; k < K; ++k) {
          const float xs = float(a.X[m * K + k]) * (smooth ? 1 / a.smooth[k] : 1.0f);
          left[m * K + k] = std::int8_t(std::fmin(std::fmax(std::rint(xs * inverse), -127.0f), 127.0f));
        }
        scale[m] = amax * (1.0f / 127);
      });
  kb::parallel_for(
      exec, a.M * N, KB_LAMBDA(long long i) {
        long long acc = 0;
        for (long long k = 0; k < K; ++k) acc += left[i / N * K + k] * a.W[i % N * K + k];
        a.Y[i] = kb::f16(std::fma(float(acc), scale[i / N] * a.ws[i % N], float(a.bias[i % N])));
      });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { quantised_gemm(a, exec, true); }

// Without smoothing.
inline void control(const kbench_args& a, kbench_exec& exec) { quantised_gemm(a, exec, false); }
