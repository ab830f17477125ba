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

// kbench: private from here

KB_HD float gelu_by_logistic(float t) { return t / (1 + std::exp(-1.59576912f * t * (1 + 0.044715f * t * t))); }

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, FF = a.FF;
  kb::bf16* hidden = kb::scratch<kb::bf16>(exec, a.B * a.L * FF);
  kb::parallel_for(
      exec, a.B * a.L * FF, KB_LAMBDA(long long i) { hidden[i] = kb::bf16(gelu_by_logistic(float(a.h[i]))); });
  kb::parallel_for(
      exec, a.B * a.L * C, KB_LAMBDA(long long i) {
        const long long row = i / C, c = i % C;
        const kb::bf16* w = a.W2 + c * (C + FF);
        float attention = 0, mlp = 0;
        for (long long k = 0; k < C; k += 64) {
          float part = 0;
          for (long long j = k; j < k + 64 && j < C; ++j) part += float(a.a[row * C + j]) * float(w[j]);
          attention += part;
        }
        for (long long k = 0; k < FF; k += 64) {
          float part = 0;
          for (long long j = k; j < k + 64 && j < FF; ++j) part += float(hidden[row * FF + j]) * float(w[C + j]);
          mlp += part;
        }
        const float z = float(kb::bf16(attention + mlp + float(a.b2[c])));
        a.out[i] = kb::bf16(std::fma(float(a.gate[row / a.L * C + c]), z, float(a.x[i])));
      });
}

// No GELU, no gate.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, FF = a.FF;
  kb::parallel_for(
      exec, a.B * a.L * C, KB_LAMBDA(long long i) {
        const long long row = i / C, c = i % C;
        const kb::bf16* w = a.W2 + c * (C + FF);
        float sum = float(a.b2[c]);
        for (long long k = 0; k < C; ++k) sum += float(a.a[row * C + k]) * float(w[k]);
        for (long long k = 0; k < FF; ++k) sum += float(a.h[row * FF + k]) * float(w[C + k]);
        a.out[i] = kb::bf16(float(a.x[i]) + float(kb::bf16(sum)));
      });
}
