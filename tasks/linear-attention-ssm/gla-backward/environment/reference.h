// Backward of gated linear attention. The state is cut into parts of kPart columns (or rows), each followed through
// time by one iteration; what a sum over the whole state needs is summed over the parts afterwards. States are kept
// once every kTokens tokens, and recomputed from there in the pass backwards.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline constexpr int kTokens = 64, kPart = 32;

// One chunk of tokens, [first, end), and where its partial sums lie: [part, bh, t - first, channel].
struct Chunk {
  long long first, end;
};

KB_HD long long token_at(const kbench_args& a, long long bh, long long t) {
  return (bh / a.H * a.T + t) * a.H + bh % a.H;  // of [B, T, H]
}

// Element j of a part that has `held` of them. Parts are always followed in full, so that they stay in registers.
KB_HD float of_part(const kb::bf16* part, int j, int held) { return j < held ? float(part[j]) : 0.0f; }

// Hands store(where, sum over the parts) every element of the chunk.
template <class Store>
void sum_parts(kbench_exec& exec, const kbench_args& a, Chunk chunk, const float* partial, long long parts,
               long long channels, Store store) {
  const long long pairs = a.B * a.H, size = pairs * kTokens * channels;
  kb::parallel_for(
      exec, pairs * (chunk.end - chunk.first) * channels, KB_LAMBDA(long long i) {
        const long long channel = i % channels, t = i / channels % (chunk.end - chunk.first);
        const long long bh = i / (channels * (chunk.end - chunk.first));
        float sum = 0;
        for (long long part = 0; part < parts; ++part)
          sum += partial[part * size + (bh * kTokens + t) * channels + channel];
        store(token_at(a, bh, chunk.first + t) * channels + channel, sum);
      });
}

struct StoreRounded {
  kb::bf16* to;
  float factor;
  KB_HD void operator()(long long at, float sum) const { to[at] = kb::bf16(factor * sum); }
};
struct StoreGate {
  float* to;
  const float* g;
  KB_HD void operator()(long long at, float sum) const { to[at] = std::exp(g[at]) * sum; }
};

// S through one chunk, from `state` on, which keeps its end; the partial sums of dq. [part, bh, i] are the iterations.
inline void forward(const kbench_args& a, kbench_exec& exec, Chunk chunk, float* state, float* partial) {
  const long long K = a.K, V = a.V, pairs = a.B * a.H, parts = (V + kPart - 1) / kPart, all = parts * pairs * K;
  kb::parallel_for(
      exec, all, KB_LAMBDA(long long n) {
        const long long i = n % K, bh = n / K % pairs, part = n / (K * pairs);
        const int columns = int(V - part * kPart < kPart ? V - part * kPart : kPart);
        float S[kPart];
        for (int j = 0; j < kPart; ++j) S[j] = state[j * all + n];
        for (long long t = chunk.first; t < chunk.end; ++t) {
          const long long at = token_at(a, bh, t);
          const kb::bf16 *v = a.v + at * V + part * kPart, *dO = a.dO + at * V + part * kPart;
          const float decay = std::exp(a.g[at * K + i]), k = float(a.k[at * K + i]);
          float sum = 0;
          for (int j = 0; j < kPart; ++j) {
            S[j] = decay * S[j] + k * of_part(v, j, columns);
            sum += S[j] * of_part(dO, j, columns);
          }
          partial[((part * pairs + bh) * kTokens + t - chunk.first) * K + i] = sum;
        }
        for (int j = 0; j < kPart; ++j) state[j * all + n] = S[j];
      });
}

// dS through one chunk backwards, together with S before each token, recomputed from `state`; the partial sums of dk
// and dg. `later` holds exp(g)*dS of the token behind the chunk, then that of the chunk's first. `states`: kTokens
// states.
inline void backward(const kbench_args& a, kbench_exec& exec, Chunk chunk, const float* state, float* states,
                     float* later, float* of_k, float* of_g) {
  const long long K = a.K, V = a.V, pairs = a.B * a.H, parts = (V + kPart - 1) / kPart, all = parts * pairs * K;
  const float c = 1 / std::sqrt(float(K));
  kb::parallel_for(
      exec, all, KB_LAMBDA(long long n) {
        const long long i = n % K, bh = n / K % pairs, part = n / (K * pairs);
        const int columns = int(V - part * kPart < kPart ? V - part * kPart : kPart);
        float S[kPart], dS[kPart];
        for (int j = 0; j < kPart; ++j) S[j] = state[j * all + n], dS[j] = later[j * all + n];
        for (long long t = chunk.first; t < chunk.end; ++t) {
          const long long at = token_at(a, bh, t);
          const float decay = std::exp(a.g[at * K + i]), k = float(a.k[at * K + i]);
          for (int j = 0; j < kPart; ++j) {
            states[((t - chunk.first) * kPart + j) * all + n] = S[j];
            S[j] = decay * S[j] + k * of_part(a.v + at * V + part * kPart, j, columns);
          }
        }
        for (long long t = chunk.end - 1; t >= chunk.first; --t) {
          const long long at = token_at(a, bh, t), to = ((part * pairs + bh) * kTokens + t - chunk.first) * K + i;
          const kb::bf16 *v = a.v + at * V + part * kPart, *dO = a.dO + at * V + part * kPart;
          const float decay = std::exp(a.g[at * K + i]), q = c * float(a.q[at * K + i]);
          float dk = 0, dg = 0;
          for (int j = 0; j < kPart; ++j) {
            dS[j] += q * of_part(dO, j, columns);
            dk += dS[j] * of_part(v, j, columns);
            dg += dS[j] * states[((t - chunk.first) * kPart + j) * all + n];
            dS[j] *= decay;
          }
          of_k[to] = dk;
          of_g[to] = dg;
        }
        for (int j = 0; j < kPart; ++j) later[j * all + n] = dS[j];
      });
}

// The same dS, a column by one iteration: the partial sums of dv over kPart rows. [part, bh, j] are the iterations.
inline void backward_columns(const kbench_args& a, kbench_exec& exec, Chunk chunk, float* later, float* of_v) {
  const long long K = a.K, V = a.V, pairs = a.B * a.H, parts = (K + kPart - 1) / kPart, all = parts * pairs * V;
  const float c = 1 / std::sqrt(float(K));
  kb::parallel_for(
      exec, all, KB_LAMBDA(long long n) {
        const long long j = n % V, bh = n / V % pairs, part = n / (V * pairs);
        const int rows = int(K - part * kPart < kPart ? K - part * kPart : kPart);
        float dS[kPart];
        for (int i = 0; i < kPart; ++i) dS[i] = later[i * all + n];
        for (long long t = chunk.end - 1; t >= chunk.first; --t) {
          const long long at = token_at(a, bh, t);
          const kb::bf16 *q = a.q + at * K + part * kPart, *k = a.k + at * K + part * kPart;
          const float dO = c * float(a.dO[at * V + j]);
          float dv = 0;
          for (int i = 0; i < kPart; ++i) {
            dS[i] += of_part(q, i, rows) * dO;
            dv += dS[i] * of_part(k, i, rows);
            if (i < rows) dS[i] *= std::exp(a.g[at * K + part * kPart + i]);
          }
          of_v[((part * pairs + bh) * kTokens + t - chunk.first) * V + j] = dv;
        }
        for (int i = 0; i < kPart; ++i) later[i * all + n] = dS[i];
      });
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long K = a.K, V = a.V, pairs = a.B * a.H, chunks = (a.T + kTokens - 1) / kTokens;
  const long long k_parts = (K + kPart - 1) / kPart, v_parts = (V + kPart - 1) / kPart;
  const long long state_size = v_parts * pairs * K * kPart, column_size = k_parts * pairs * V * kPart;
  float* states = kb::scratch<float>(exec, (chunks + 1) * state_size);  // at the beginning of every chunk
  float* inside = kb::scratch<float>(exec, kTokens * state_size);
  float* later = kb::scratch<float>(exec, state_size);
  float* later_columns = kb::scratch<float>(exec, column_size);
  float* partial = kb::scratch<float>(exec, v_parts * pairs * kTokens * K);
  float* partial_of_g = kb::scratch<float>(exec, v_parts * pairs * kTokens * K);
  float* partial_of_v = kb::scratch<float>(exec, k_parts * pairs * kTokens * V);
  kb::parallel_for(exec, state_size, KB_LAMBDA(long long n) { states[n] = later[n] = 0; });
  kb::parallel_for(exec, column_size, KB_LAMBDA(long long n) { later_columns[n] = 0; });
  for (long long n = 0; n < chunks; ++n) {
    const Chunk chunk{n * kTokens, (n + 1) * kTokens < a.T ? (n + 1) * kTokens : a.T};
    float *before = states + n * state_size, *after = before + state_size;
    kb::parallel_for(exec, state_size, KB_LAMBDA(long long i) { after[i] = before[i]; });
    forward(a, exec, chunk, after, partial);
    sum_parts(exec, a, chunk, partial, v_parts, K, StoreRounded{a.dq, 1 / std::sqrt(float(K))});
  }
  for (long long n = chunks - 1; n >= 0; --n) {
    const Chunk chunk{n * kTokens, (n + 1) * kTokens < a.T ? (n + 1) * kTokens : a.T};
    backward(a, exec, chunk, states + n * state_size, inside, later, partial, partial_of_g);
    sum_parts(exec, a, chunk, partial, v_parts, K, StoreRounded{a.dk, 1});
    sum_parts(exec, a, chunk, partial_of_g, v_parts, K, StoreGate{a.dg, a.g});
    backward_columns(a, exec, chunk, later_columns, partial_of_v);
    sum_parts(exec, a, chunk, partial_of_v, k_parts, V, StoreRounded{a.dv, 1});
  }
}
