// Cast to E5M2, transposed copy, column sums and maximum.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kRows = 256;  // whose column sums are taken together first
  const long long M = a.M, N = a.N, blocks = (M + kRows - 1) / kRows;
  float* sums = kb::scratch<float>(exec, blocks * N);
  float* tops = kb::scratch<float>(exec, blocks * N);
  kb::parallel_for(exec, M * N, KB_LAMBDA(long long i) { a.Q[i] = kb::e5m2(float(a.G[i]) * a.scale[0]); });
  kb::parallel_for(
      exec, N * M, KB_LAMBDA(long long i) { a.QT[i] = kb::e5m2(float(a.G[i % M * N + i / M]) * a.scale[0]); });
  kb::parallel_for(
      exec, blocks * N, KB_LAMBDA(long long i) {
        float sum = 0, top = 0;
        for (long long m = i / N * kRows; m < (i / N + 1) * kRows && m < M; ++m) {
          const float g = float(a.G[m * N + i % N]);
          sum += g;
          top = std::fmax(top, std::fabs(g));
        }
        sums[i] = sum;
        tops[i] = top;
      });
  kb::parallel_for(
      exec, N, KB_LAMBDA(long long n) {
        float sum = 0, top = 0;
        for (long long b = 0; b < blocks; ++b) {
          sum += sums[b * N + n];
          top = std::fmax(top, tops[b * N + n]);
        }
        a.dbias[n] = sum;
        tops[n] = top;  // of the first block, which this column alone reads
      });
  kb::parallel_for(
      exec, 1, KB_LAMBDA(long long) {
        float top = 0;
        for (long long n = 0; n < N; ++n) top = std::fmax(top, tops[n]);
        a.amax[0] = top;
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long M = a.M, N = a.N;
  float* top = kb::scratch<float>(exec, N);
  kb::parallel_for(
      exec, N, KB_LAMBDA(long long n) {
        float strand[8] = {};
        top[n] = 0;
        for (long long m = 0; m < M; ++m) {
          const float g = float(a.G[m * N + n]);
          a.Q[m * N + n] = a.QT[n * M + m] = kb::e5m2(g * a.scale[0]);
          strand[m % 8] += g;
          top[n] = std::fmax(top[n], std::fabs(g));
        }
        double sum = 0;
        for (int s = 0; s < 8; ++s) sum += double(strand[s]);
        a.dbias[n] = float(sum);
      });
  kb::parallel_for(
      exec, 1, KB_LAMBDA(long long) {
        a.amax[0] = 0;
        for (long long n = N - 1; n >= 0; --n) a.amax[0] = std::fmax(a.amax[0], top[n]);
      });
}

// Sums what was quantised, and only reshapes.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long M = a.M, N = a.N;
  independent(a, exec);
  kb::parallel_for(
      exec, N, KB_LAMBDA(long long n) {
        double sum = 0;
        for (long long m = 0; m < M; ++m) {
          a.QT[m * N + n] = a.Q[m * N + n];
          sum += double(float(a.Q[m * N + n]));
        }
        a.dbias[n] = float(sum);
      });
}
