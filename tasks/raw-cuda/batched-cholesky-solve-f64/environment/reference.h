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
