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

// kbench: private from here

// Two elements of a head are a complex number; in fp64, rounded once.
KB_HD kb::bf16 rotated(const kbench_args& a, long long n, const kb::bf16* from, long long d) {
  const long long half = a.D / 2, e = d % half;
  const float* cs = a.cs + a.pos[n] * a.D;
  const double re = double(float(from[e])), im = double(float(from[e + half])), c = cs[e], s = cs[e + half];
  return kb::bf16(float(d < half ? re * c - im * s : re * s + im * c));
}

// Keys are rotated into a buffer of their own; then every row of the pages looks for the token that wants it.
inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long heads = a.Hq + 2 * a.Hk, turning = a.Hq + a.Hk, slots = a.NB * a.BS;
  kb::bf16* key = kb::scratch<kb::bf16>(exec, a.N * a.Hk * a.D);
  std::int32_t* token = kb::scratch<std::int32_t>(exec, slots);
  kb::parallel_for(exec, slots, KB_LAMBDA(long long s) { token[s] = -1; });
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long n) {
        if (a.slot[n] >= 0) token[a.slot[n]] = std::int32_t(n);
      });
  kb::parallel_for(
      exec, a.N * turning * a.D, KB_LAMBDA(long long i) {
        const long long d = i % a.D, h = i / a.D % turning, n = i / a.D / turning;
        kb::bf16* to = h < a.Hq ? a.qo + (n * a.Hq + h) * a.D : key + (n * a.Hk + h - a.Hq) * a.D;
        to[d] = rotated(a, n, a.qkv + (n * heads + h) * a.D, d);
      });
  kb::parallel_for(
      exec, 2 * slots * a.Hk * a.D, KB_LAMBDA(long long i) {
        const long long d = i % a.D, h = i / a.D % a.Hk, row = i / a.D / a.Hk;
        const long long in_page = row % a.BS, value = row / a.BS % 2, page = row / a.BS / 2;
        const long long n = token[page * a.BS + in_page];
        if (n < 0) return;
        a.pages[i] = value ? a.qkv[(n * heads + turning + h) * a.D + d] : key[(n * a.Hk + h) * a.D + d];
      });
}

// Pairs of neighbours (GPT-J's) in the queries; keys stored as they came.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long heads = a.Hq + 2 * a.Hk, half = a.D / 2;
  kb::parallel_for(
      exec, a.N * heads * half, KB_LAMBDA(long long i) {
        const long long e = i % half, h = i / half % heads, n = i / half / heads;
        const kb::bf16* from = a.qkv + (n * heads + h) * a.D;
        if (h >= a.Hq) {
          if (a.slot[n] < 0) return;
          const long long kv = h - a.Hq;
          kb::bf16* to = a.pages + (kv < a.Hk ? place(a, a.slot[n], 0, kv) : place(a, a.slot[n], 1, kv - a.Hk));
          to[e] = from[e];
          to[e + half] = from[e + half];
          return;
        }
        const float* cs = a.cs + a.pos[n] * a.D;
        const float x = float(from[2 * e]), y = float(from[2 * e + 1]), c = cs[e], s = cs[e + half];
        kb::bf16* to = a.qo + (n * a.Hq + h) * a.D;
        to[2 * e] = kb::bf16(x * c - y * s);
        to[2 * e + 1] = kb::bf16(y * c + x * s);
      });
}
