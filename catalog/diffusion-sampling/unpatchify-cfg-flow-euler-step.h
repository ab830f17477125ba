// From tokens to a guided Euler step on the latent.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// Where in vc and vu element (b, c, t, h, w) of the latent has its velocity.
KB_HD long long velocity_at(const kbench_args& a, long long b, long long c, long long t, long long h, long long w) {
  const long long token = ((b * a.T + t) * (a.H / 2) + h / 2) * (a.W / 2) + w / 2;
  return token * 4 * a.C + (h % 2 * 2 + w % 2) * a.C + c;
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.C * a.T * a.H * a.W, KB_LAMBDA(long long i) {
        const long long w = i % a.W, h = i / a.W % a.H, t = i / (a.W * a.H) % a.T, c = i / (a.W * a.H * a.T) % a.C;
        const long long b = i / (a.W * a.H * a.T * a.C), at = velocity_at(a, b, c, t, h, w);
        const float vc = float(a.vc[at]), vu = float(a.vu[at]);
        a.x[i] += (a.sig[b * 2 + 1] - a.sig[b * 2]) * (vu + a.w[b] * (vc - vu));
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long tokens = a.T * (a.H / 2) * (a.W / 2);
  kb::parallel_for(
      exec, a.B * tokens, KB_LAMBDA(long long i) {
        const long long b = i / tokens, j = i % (a.W / 2), row = i / (a.W / 2) % (a.H / 2);
        const long long t = i % tokens / (a.W / 2 * (a.H / 2));
        const double w = double(a.w[b]), step = double(a.sig[b * 2 + 1]) - double(a.sig[b * 2]);
        for (long long f = 0; f < 4 * a.C; ++f) {
          const long long c = f % a.C, pixel = f / a.C;
          const double v = (1 - w) * double(float(a.vu[i * 4 * a.C + f])) + w * double(float(a.vc[i * 4 * a.C + f]));
          float& x = a.x[(((b * a.C + c) * a.T + t) * a.H + 2 * row + pixel / 2) * a.W + 2 * j + pixel % 2];
          x = float(double(x) + step * v);
        }
      });
}

// Features in the order (c, ph, pw).
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.C * a.T * a.H * a.W, KB_LAMBDA(long long i) {
        const long long w = i % a.W, h = i / a.W % a.H, t = i / (a.W * a.H) % a.T, c = i / (a.W * a.H * a.T) % a.C;
        const long long b = i / (a.W * a.H * a.T * a.C);
        const long long at = velocity_at(a, b, 0, t, h - h % 2, w - w % 2) + c * 4 + h % 2 * 2 + w % 2;
        const float vc = float(a.vc[at]), vu = float(a.vu[at]);
        a.x[i] += (a.sig[b * 2 + 1] - a.sig[b * 2]) * (vu + a.w[b] * (vc - vu));
      });
}
