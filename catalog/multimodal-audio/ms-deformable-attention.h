// Multi-scale deformable attention: softmaxed weights, bilinear samples of four levels.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.Q * a.H * a.D, KB_LAMBDA(long long i) {
        const long long d = i % a.D, head = i / a.D, h = head % a.H, b = head / (a.H * a.Q);
        const float* lg = a.lg + head * 4 * a.P;
        const float* loc = a.loc + head * 4 * a.P * 2;
        float top = -INFINITY, weights = 0, sum = 0;
        for (long long j = 0; j < 4 * a.P; ++j) top = std::fmax(top, lg[j]);
        for (long long j = 0; j < 4 * a.P; ++j) weights += std::exp(lg[j] - top);
        const kb::bf16* level = a.value + (b * a.S * a.H + h) * a.D + d;
        for (int l = 0; l < 4; ++l) {
          const long long Y = a.Y0 >> l, X = a.X0 >> l;
          const auto pixel = [=](long long y, long long x) -> float {
            return y >= 0 && y < Y && x >= 0 && x < X ? float(level[(y * X + x) * a.H * a.D]) : 0.0f;
          };
          for (long long p = l * a.P; p < (l + 1) * a.P; ++p) {
            const float px = loc[2 * p] * float(X) - 0.5f, py = loc[2 * p + 1] * float(Y) - 0.5f;
            const long long x = (long long)std::floor(px), y = (long long)std::floor(py);
            const float fx = px - float(x), fy = py - float(y);
            const float upper = pixel(y, x) * (1 - fx) + pixel(y, x + 1) * fx;
            const float lower = pixel(y + 1, x) * (1 - fx) + pixel(y + 1, x + 1) * fx;
            sum += std::exp(lg[p] - top) / weights * (upper * (1 - fy) + lower * fy);
          }
          level += Y * X * a.H * a.D;
        }
        a.out[i] = kb::bf16(sum);
      });
}

// kbench: private from here

// One head of one query; `border`: pixels outside are those of the border.
KB_HD void sample_head(const kbench_args& a, long long head, bool border) {
  const long long h = head % a.H, b = head / (a.H * a.Q), stride = a.H * a.D;
  for (long long d = 0; d < a.D; ++d) {
    float weights = 0, sum = 0;
    long long base = b * a.S;
    for (int l = 0; l < 4; ++l) {
      const long long Y = a.Y0 >> l, X = a.X0 >> l;
      for (long long p = 0; p < a.P; ++p) {
        const long long at = head * 4 * a.P + l * a.P + p;
        const float w = std::exp(a.lg[at]);
        weights += w;
        const float px = std::fma(a.loc[2 * at], float(X), -0.5f), py = std::fma(a.loc[2 * at + 1], float(Y), -0.5f);
        const float x0 = std::floor(px), y0 = std::floor(py);
        for (int corner = 0; corner < 4; ++corner) {
          long long x = (long long)x0 + corner % 2, y = (long long)y0 + corner / 2;
          const float of_x = corner % 2 ? px - x0 : 1 - (px - x0), of_y = corner / 2 ? py - y0 : 1 - (py - y0);
          if (border) {
            x = x < 0 ? 0 : x < X ? x : X - 1;
            y = y < 0 ? 0 : y < Y ? y : Y - 1;
          } else if (x < 0 || x >= X || y < 0 || y >= Y) {
            continue;
          }
          sum += w * of_x * of_y * float(a.value[(base + y * X + x) * stride + h * a.D + d]);
        }
      }
      base += Y * X;
    }
    a.out[head * a.D + d] = kb::bf16(sum / weights);
  }
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B * a.Q * a.H, KB_LAMBDA(long long head) { sample_head(a, head, false); });
}

// The border's pixels instead of zeros.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B * a.Q * a.H, KB_LAMBDA(long long head) { sample_head(a, head, true); });
}
