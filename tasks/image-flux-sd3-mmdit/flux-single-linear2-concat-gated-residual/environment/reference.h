// Projection of [attention, GELU(MLP)], gate, residual.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

KB_HD float gelu(float t) { return 0.5f * t * (1 + std::tanh(0.797884561f * (t + 0.044715f * t * t * t))); }

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // tokens an iteration computes: each weight is loaded once for all of them
  const long long C = a.C, FF = a.FF, K = C + FF, rows = a.B * a.L, blocks = (rows + kRows - 1) / kRows;
  kb::bf16* u = kb::scratch<kb::bf16>(exec, rows * K);
  kb::bf16* turned = kb::scratch<kb::bf16>(exec, K * C);  // W2 as [K, C]: neighbours in c are neighbours in memory
  kb::parallel_for(
      exec, rows * K, KB_LAMBDA(long long i) {
        const long long row = i / K, k = i % K;
        u[i] = k < C ? a.a[row * C + k] : kb::bf16(gelu(float(a.h[row * FF + k - C])));
      });
  kb::parallel_for(exec, K * C, KB_LAMBDA(long long i) { turned[i] = a.W2[i % C * K + i / C]; });
  kb::parallel_for(
      exec, blocks * C, KB_LAMBDA(long long i) {
        const long long first = i / C * kRows, c = i % C;
        const kb::bf16* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = u + (first + r < rows ? first + r : rows - 1) * K;
        float sum[kRows] = {};
        for (long long k = 0; k < K; ++k) {
          const float w = float(turned[k * C + c]);
          for (int r = 0; r < kRows; ++r) sum[r] += float(row[r][k]) * w;
        }
        for (int r = 0; r < kRows && first + r < rows; ++r) {
          const float z = float(kb::bf16(float(a.b2[c]) + sum[r]));
          const long long at = (first + r) * C + c;
          a.out[at] = kb::bf16(float(a.x[at]) + float(a.gate[(first + r) / a.L * C + c]) * z);
        }
      });
}
