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

// kbench: private from here

// num and den, both divided by exp(top).
struct Wkv {
  double num = 0, den = 0, top = -1e300;
};

// What the tokens of `older` and `newer` hold together, the former decayed by exp(-decay).
KB_HD Wkv joined(const Wkv& older, const Wkv& newer, double decay) {
  const double before = older.top - decay, top = std::fmax(before, newer.top);
  const double x = std::exp(before - top), y = std::exp(newer.top - top);
  Wkv both;
  both.num = older.num * x + newer.num * y;
  both.den = older.den * x + newer.den * y;
  both.top = top;
  return both;
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kChunk = 32;
  kb::parallel_for(
      exec, a.B * a.C, KB_LAMBDA(long long i) {
        const long long b = i / a.C, c = i % a.C;
        const double decay = std::exp(double(a.w[c]));
        Wkv before;  // all chunks that are done
        for (long long first = 0; first < a.T; first += kChunk) {
          Wkv chunk;  // this one, up to t
          for (long long t = first; t < first + kChunk && t < a.T; ++t) {
            const long long at = (b * a.T + t) * a.C + c;
            const double k = double(float(a.k[at])), v = double(float(a.v[at])), r = double(float(a.r[at]));
            const Wkv past = joined(before, chunk, double(t - first) * decay);
            Wkv now;
            now.num = v, now.den = 1, now.top = k + double(a.u[c]);
            const Wkv all = joined(past, now, 0);
            a.y[at] = kb::bf16(float(all.num / all.den / (1 + std::exp(-r))));
            now.top = k;
            chunk = joined(chunk, now, decay);
          }
          before = joined(before, chunk, double(kChunk) * decay);
        }
      });
}

// Without the bonus of the current token.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * a.C, KB_LAMBDA(long long i) {
        const long long b = i / a.C, c = i % a.C;
        const float decay = std::exp(a.w[c]);
        float num = 0, den = 0, top = -1e38f;
        for (long long t = 0; t < a.T; ++t) {
          const long long at = (b * a.T + t) * a.C + c;
          const float k = float(a.k[at]), v = float(a.v[at]), r = float(a.r[at]);
          float higher = std::fmax(top, k);
          float old = std::exp(top - higher), now = std::exp(k - higher);
          a.y[at] = kb::bf16((old * num + now * v) / (old * den + now) / (1 + std::exp(-r)));
          higher = std::fmax(top - decay, k);
          old = std::exp(top - decay - higher), now = std::exp(k - higher);
          num = old * num + now * v;
          den = old * den + now;
          top = higher;
        }
      });
}
