// LM head and Gumbel-max sampling.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kRows = 8;  // of x, for which an iteration loads each weight once
  const long long B = a.B, K = a.DM, V = a.V, blocks = (B + kRows - 1) / kRows;
  kb::bf16* turned = kb::scratch<kb::bf16>(exec, K * V);  // Wh as [DM, V]: neighbours in v are neighbours in memory
  float* z = kb::scratch<float>(exec, B * V);
  kb::parallel_for(exec, K * V, KB_LAMBDA(long long i) { turned[i] = a.Wh[i % V * K + i / V]; });
  kb::parallel_for(
      exec, blocks * V, KB_LAMBDA(long long i) {
        const long long first = i / V * kRows, v = i % V;
        const kb::bf16* row[kRows];
        for (int r = 0; r < kRows; ++r) row[r] = a.x + (first + r < B ? first + r : B - 1) * K;
        float sum[kRows] = {};
        for (long long k = 0; k < K; ++k) {
          const float w = float(turned[k * V + v]);
          for (int r = 0; r < kRows; ++r) sum[r] += float(row[r][k]) * w;
        }
        for (int r = 0; r < kRows && first + r < B; ++r) z[(first + r) * V + v] = sum[r] / a.temp[first + r];
      });
  kb::parallel_for(
      exec, B, KB_LAMBDA(long long b) {
        float top = -INFINITY, best = -INFINITY;
        double sum = 0;
        int token = 0;
        for (long long v = 0; v < V; ++v) {
          top = std::fmax(top, z[b * V + v]);
          const float candidate = z[b * V + v] - std::log(-std::log(a.U[b * V + v]));
          if (candidate > best) best = candidate, token = int(v);
        }
        for (long long v = 0; v < V; ++v) sum += double(std::exp(z[b * V + v] - top));
        a.token[b] = token;
        a.best[b] = best;
        a.lse[b] = top + float(std::log(sum));
      });
}

// kbench: private from here

KB_HD void sample(const kbench_args& a, const float* z, long long b, bool noisy) {
  constexpr long long kTile = 128;
  constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;
  float top = -INFINITY, sum = 0, best = -INFINITY;
  int token = 0;
  for (long long first = 0; first < a.V; first += kTile) {
    const long long end = first + kTile < a.V ? first + kTile : a.V;
    float higher = top, part = 0;
    for (long long v = first; v < end; ++v) higher = std::fmax(higher, z[v]);
    for (long long v = first; v < end; ++v) {
      part += std::exp2((z[v] - higher) * kLog2e);
      const float candidate = noisy ? z[v] - kLn2 * std::log2(-kLn2 * std::log2(a.U[b * a.V + v])) : z[v];
      if (candidate > best) best = candidate, token = int(v);
    }
    sum = sum * std::exp2((top - higher) * kLog2e) + part;
    top = higher;
  }
  a.token[b] = token;
  a.best[b] = best;
  a.lse[b] = std::fma(kLn2, std::log2(sum), top);
}

inline void head(const kbench_args& a, kbench_exec& exec, bool noisy) {
  float* z = kb::scratch<float>(exec, a.B * a.V);
  kb::parallel_for(
      exec, a.V * a.B, KB_LAMBDA(long long i) {
        const long long v = i / a.B, b = i % a.B;
        float sum = 0;
        for (long long k = 0; k < a.DM; k += 64) {
          float part = 0;
          for (long long j = k; j < k + 64 && j < a.DM; ++j)
            part += float(a.x[b * a.DM + j]) * float(a.Wh[v * a.DM + j]);
          sum += part;
        }
        z[b * a.V + v] = sum * (1 / a.temp[b]);
      });
  kb::parallel_for(exec, a.B, KB_LAMBDA(long long b) { sample(a, z + b * a.V, b, noisy); });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { head(a, exec, true); }

// Greedy.
inline void control(const kbench_args& a, kbench_exec& exec) { head(a, exec, false); }
