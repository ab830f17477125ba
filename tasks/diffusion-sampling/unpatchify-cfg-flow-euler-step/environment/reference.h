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
