// Min-p sampling by inversion, in the order of the vocabulary.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        const kb::bf16* logits = a.logits + b * a.V;
        float M = -INFINITY;
        for (long long i = 0; i < a.V; ++i) M = std::fmax(M, float(logits[i]) / a.temp[b]);
        const float threshold = M + std::log(a.minp[b]);
        double all = 0, kept = 0, sum = 0;
        int count = 0;
        for (long long i = 0; i < a.V; ++i) {
          const float x = float(logits[i]) / a.temp[b], e = std::exp(x - M);
          all += double(e);
          if (x >= threshold) kept += double(e), ++count;
        }
        long long token = -1;
        for (long long i = 0; i < a.V && !(sum > double(a.u[b]) * kept); ++i) {
          const float x = float(logits[i]) / a.temp[b];
          if (x < threshold) continue;
          sum += double(std::exp(x - M));
          token = i;
        }
        a.token[b] = int(token);
        a.mass[b] = float(kept / all);
        a.nkeep[b] = count;
      });
}
