// Backward of a modulated LayerNorm.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

struct Row {
  float mean, deviation, of_g, of_gu;  // of x: mean and sd; mean(g), mean(g*u)
};

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kTokens = 256;  // whose column sums are taken together first
  const long long C = a.C, N = a.N, blocks = (N + kTokens - 1) / kTokens;
  Row* rows = kb::scratch<Row>(exec, a.B * N);
  float* shift = kb::scratch<float>(exec, a.B * blocks * C);
  float* scale = kb::scratch<float>(exec, a.B * blocks * C);
  kb::parallel_for(
      exec, a.B * N, KB_LAMBDA(long long n) {
        const kb::bf16 *x = a.x + n * C, *dy = a.dy + n * C, *sc = a.sc + n / N * C;
        float sum = 0, squares = 0, of_g = 0, of_gu = 0;
        for (long long c = 0; c < C; ++c) sum += float(x[c]);
        const float mean = sum / float(C);
        for (long long c = 0; c < C; ++c) {
          const float t = float(x[c]) - mean, g = float(dy[c]) * (1 + float(sc[c]));
          squares += t * t;
          of_g += g;
          of_gu += g * t;
        }
        const float deviation = std::sqrt(squares / float(C) + a.eps);
        rows[n] = {mean, deviation, of_g / float(C), of_gu / float(C) / deviation};
      });
  kb::parallel_for(
      exec, a.B * N * C, KB_LAMBDA(long long i) {
        const Row row = rows[i / C];
        const float u = (float(a.x[i]) - row.mean) / row.deviation;
        const float g = float(a.dy[i]) * (1 + float(a.sc[i / (N * C) * C + i % C]));
        a.dx[i] = kb::bf16((g - row.of_g - u * row.of_gu) / row.deviation);
      });
  kb::parallel_for(
      exec, a.B * blocks * C, KB_LAMBDA(long long i) {
        const long long c = i % C, block = i / C % blocks, b = i / (C * blocks);
        float of_shift = 0, of_scale = 0;
        for (long long n = block * kTokens; n < (block + 1) * kTokens && n < N; ++n) {
          const Row row = rows[b * N + n];
          const float dy = float(a.dy[(b * N + n) * C + c]);
          of_shift += dy;
          of_scale += dy * ((float(a.x[(b * N + n) * C + c]) - row.mean) / row.deviation);
        }
        shift[i] = of_shift;
        scale[i] = of_scale;
      });
  kb::parallel_for(
      exec, a.B * C, KB_LAMBDA(long long i) {
        float of_shift = 0, of_scale = 0;
        for (long long block = 0; block < blocks; ++block) {
          of_shift += shift[(i / C * blocks + block) * C + i % C];
          of_scale += scale[(i / C * blocks + block) * C + i % C];
        }
        a.dsh[i] = of_shift;
        a.dsc[i] = of_scale;
      });
}
