// Rotary embedding of packed queries and keys, keys and values appended to their pages.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// Where a slot keeps head h of its key (which = 0) or value (which = 1): pages[slot // BS, which, slot % BS, h, 0].
KB_HD long long place(const kbench_args& a, long long slot, int which, long long h) {
  return (((slot / a.BS * 2 + which) * a.BS + slot % a.BS) * a.Hk + h) * a.D;
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long heads = a.Hq + 2 * a.Hk, half = a.D / 2;
  kb::parallel_for(
      exec, a.N * heads * half, KB_LAMBDA(long long i) {
        const long long e = i % half, h = i / half % heads, n = i / half / heads;
        kb::bf16* to = a.qo + (n * a.Hq + h) * a.D;
        if (h >= a.Hq) {
          if (a.slot[n] < 0) return;
          const long long kv = h - a.Hq;
          to = a.pages + (kv < a.Hk ? place(a, a.slot[n], 0, kv) : place(a, a.slot[n], 1, kv - a.Hk));
        }
        const kb::bf16* from = a.qkv + (n * heads + h) * a.D;
        if (h >= a.Hq + a.Hk) {
          to[e] = from[e];
          to[e + half] = from[e + half];
          return;
        }
        const float* cs = a.cs + a.pos[n] * a.D;
        const float x = float(from[e]), y = float(from[e + half]), c = cs[e], s = cs[e + half];
        to[e] = kb::bf16(x * c - y * s);
        to[e + half] = kb::bf16(y * c + x * s);
      });
}
