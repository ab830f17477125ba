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

// kbench: private from here

inline Row* rows_by_moments(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, N = a.N;
  Row* rows = kb::scratch<Row>(exec, a.B * N);
  kb::parallel_for(
      exec, a.B * N, KB_LAMBDA(long long n) {
        double x1 = 0, x2 = 0, g1 = 0, gx = 0;
        for (long long c = 0; c < C; ++c) {
          const double x = double(float(a.x[n * C + c]));
          const double g = double(float(a.dy[n * C + c])) * (1 + double(float(a.sc[n / N * C + c])));
          x1 += x, x2 += x * x, g1 += g, gx += g * x;
        }
        const double mean = x1 / double(C), deviation = std::sqrt(x2 / double(C) - mean * mean + double(a.eps));
        const double of_gu = (gx - mean * g1) / double(C) / deviation;
        rows[n] = {float(mean), float(deviation), float(g1 / double(C)), float(of_gu)};
        for (long long c = 0; c < C; ++c) {
          const float inverse = 1 / rows[n].deviation, u = (float(a.x[n * C + c]) - rows[n].mean) * inverse;
          const float dy = float(a.dy[n * C + c]), g = std::fma(dy, float(a.sc[n / N * C + c]), dy);
          a.dx[n * C + c] = kb::bf16((g - std::fma(u, rows[n].of_gu, rows[n].of_g)) * inverse);
        }
      });
  return rows;
}

// The gradients of channel i % C over the tokens from `first` to `end` of the whole batch.
KB_HD void column_sums(const kbench_args& a, const Row* rows, long long i, long long first, long long end) {
  constexpr long long kTokens = 64;
  float shift = 0, scale = 0;
  for (long long block = first; block < end; block += kTokens) {
    float of_shift = 0, of_scale = 0;
    for (long long n = block; n < block + kTokens && n < end; ++n) {
      const float dy = float(a.dy[n * a.C + i % a.C]), inverse = 1 / rows[n].deviation;
      of_shift += dy;
      of_scale = std::fma(dy * inverse, float(a.x[n * a.C + i % a.C]) - rows[n].mean, of_scale);
    }
    shift += of_shift;
    scale += of_scale;
  }
  a.dsh[i] = shift;
  a.dsc[i] = scale;
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const Row* rows = rows_by_moments(a, exec);
  kb::parallel_for(
      exec, a.B * a.C, KB_LAMBDA(long long i) { column_sums(a, rows, i, i / a.C * a.N, (i / a.C + 1) * a.N); });
}

// Over the whole batch.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const Row* rows = rows_by_moments(a, exec);
  kb::parallel_for(exec, a.B * a.C, KB_LAMBDA(long long i) { column_sums(a, rows, i, 0, a.B * a.N); });
}
