// Cholesky factor, solution and log-determinant of many small matrices.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long B = a.B, n = a.n;
  double* packed = kb::scratch<double>(exec, n * (n + 1) / 2 * B);  // L[i,j] of matrix b at (i*(i+1)/2 + j)*B + b
  double* solution = kb::scratch<double>(exec, n * B);
  kb::parallel_for(
      exec, B, KB_LAMBDA(long long b) {
        const auto L = [=](long long i, long long j) -> double& { return packed[(i * (i + 1) / 2 + j) * B + b]; };
        double logdet = 0;
        for (long long i = 0; i < n; ++i) {
          double y = a.rhs[b * n + i];  // forward substitution goes along
          for (long long j = 0; j <= i; ++j) {
            double sum = a.A[(b * n + i) * n + j];
            for (long long k = 0; k < j; ++k) sum -= L(i, k) * L(j, k);
            L(i, j) = i == j ? std::sqrt(sum) : sum / L(j, j);
            if (j < i) y -= L(i, j) * solution[j * B + b];
          }
          solution[i * B + b] = y / L(i, i);
          logdet += 2 * std::log(L(i, i));
        }
        a.logdet[b] = logdet;
        for (long long i = n - 1; i >= 0; --i) {
          double x = solution[i * B + b];
          for (long long k = i + 1; k < n; ++k) x -= L(k, i) * solution[k * B + b];
          a.x[b * n + i] = solution[i * B + b] = x / L(i, i);
        }
      });
  kb::parallel_for(
      exec, B * n * n, KB_LAMBDA(long long at) {
        const long long j = at % n, i = at / n % n, b = at / (n * n);
        a.L[at] = j <= i ? packed[(i * (i + 1) / 2 + j) * B + b] : 0;
      });
}

// kbench: private from here

// L, right-looking, with a unit diagonal where `unit` says so.
KB_HD void factor(const kbench_args& a, long long b, bool unit) {
  const long long n = a.n;
  double* L = a.L + b * n * n;
  for (long long i = 0; i < n; ++i)
    for (long long j = 0; j < n; ++j) L[i * n + j] = j <= i ? a.A[(b * n + i) * n + j] : 0;
  for (long long k = 0; k < n; ++k) {
    const double pivot = L[k * n + k];
    for (long long i = k + 1; i < n; ++i)
      for (long long j = k + 1; j <= i; ++j) L[i * n + j] -= L[i * n + k] * L[j * n + k] / pivot;
    const double divisor = unit ? pivot : std::sqrt(pivot);
    for (long long i = k; i < n; ++i) L[i * n + k] /= divisor;
  }
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long n = a.n;
  double* inverses = kb::scratch<double>(exec, a.B * n * n);  // of L
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        factor(a, b, false);
        const double* L = a.L + b * n * n;
        double* inverse = inverses + b * n * n;
        double determinant = 1;
        a.logdet[b] = 0;
        for (long long i = n - 1; i >= 0; --i) {
          determinant *= L[i * n + i];
          if (i % 4 == 0) a.logdet[b] += 2 * std::log(determinant), determinant = 1;
        }
        for (long long j = 0; j < n; ++j)
          for (long long i = j; i < n; ++i) {
            double sum = i == j ? 1 : 0;
            for (long long k = j; k < i; ++k) sum -= L[i * n + k] * inverse[k * n + j];
            inverse[i * n + j] = sum / L[i * n + i];
          }
        for (long long i = 0; i < n; ++i) a.x[b * n + i] = 0;
        for (long long k = 0; k < n; ++k) {  // x = inverse^T * (inverse * rhs)
          double y = 0;
          for (long long j = 0; j <= k; ++j) y += inverse[k * n + j] * a.rhs[b * n + j];
          for (long long i = 0; i <= k; ++i) a.x[b * n + i] += inverse[k * n + i] * y;
        }
      });
}

// The factor of L*D*L^T. Its x is no solution either.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        factor(a, b, true);
        a.logdet[b] = 0;
        for (long long i = 0; i < a.n; ++i) a.x[b * a.n + i] = a.rhs[b * a.n + i] / a.A[(b * a.n + i) * a.n + i];
      });
}
