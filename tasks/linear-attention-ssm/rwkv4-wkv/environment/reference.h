// RWKV-4's WKV: one channel of one sequence an iteration, token after token.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.C, KB_LAMBDA(long long i) {
        const long long b = i / a.C, c = i % a.C;
        const float decay = std::exp(a.w[c]), bonus = a.u[c];
        float num = 0, den = 0, top = -1e38f;  // of the tokens before t, both divided by exp(top)
        for (long long t = 0; t < a.T; ++t) {
          const long long at = (b * a.T + t) * a.C + c;
          const float k = float(a.k[at]), v = float(a.v[at]), r = float(a.r[at]);
          float higher = std::fmax(top, bonus + k);
          float old = std::exp(top - higher), now = std::exp(bonus + k - higher);
          a.y[at] = kb::bf16((old * num + now * v) / (old * den + now) / (1 + std::exp(-r)));
          higher = std::fmax(top - decay, k);
          old = std::exp(top - decay - higher), now = std::exp(k - higher);
          num = old * num + now * v;
          den = old * den + now;
          top = higher;
        }
      });
}
