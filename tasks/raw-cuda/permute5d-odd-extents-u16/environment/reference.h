// Five axes of 16-bit words in another order.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.H * a.C * a.Wd * a.D, KB_LAMBDA(long long i) {
        const long long d = i % a.D, w = i / a.D % a.Wd, c = i / (a.D * a.Wd) % a.C, h = i / (a.D * a.Wd * a.C) % a.H;
        const long long b = i / (a.D * a.Wd * a.C * a.H);
        a.out[i] = a.x[(((b * a.C + c) * a.D + d) * a.H + h) * a.Wd + w];
      });
}
