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

// kbench: private from here

// All gradients from states at the borders of chunks, rounded to bf16, and from scores inside them, rounded likewise.
inline void chunked(const kbench_args& a, kbench_exec& exec, const float* g) {
  const long long T = a.T, K = a.K, V = a.V, pairs = a.B * a.H, chunks = (T + kTokens - 1) / kTokens;
  const float c = 1 / std::sqrt(float(K));
  float* G = kb::scratch<float>(exec, pairs * T * K);                 // g summed up inside its chunk; [b, t, h, i] as g
  kb::bf16* S = kb::scratch<kb::bf16>(exec, chunks * pairs * K * V);  // before the chunk; [chunk, bh, i, j]
  kb::bf16* dS = kb::scratch<kb::bf16>(exec, chunks * pairs * K * V);  // exp(g)*dS of the token behind the chunk
  kb::bf16* A = kb::scratch<kb::bf16>(exec, pairs * T * kTokens);      // dO[t] . v[s];  [bh, t, s - first]
  kb::bf16* P = kb::scratch<kb::bf16>(exec, pairs * T * kTokens);      // sum_i q[t,i] k[s,i] exp(G[t,i] - G[s,i])
  float* fine = kb::scratch<float>(exec, pairs * T * K);               // q*dq - k*dk
  kb::parallel_for(
      exec, pairs * chunks * K, KB_LAMBDA(long long n) {
        const long long i = n % K, chunk = n / K % chunks, bh = n / (K * chunks);
        float sum = 0;
        for (long long t = chunk * kTokens; t < (chunk + 1) * kTokens && t < T; ++t) {
          sum += g[token_at(a, bh, t) * K + i];
          G[token_at(a, bh, t) * K + i] = sum;
        }
      });
  kb::parallel_for(
      exec, pairs * K * V, KB_LAMBDA(long long n) {
        const long long j = n % V, i = n / V % K, bh = n / (K * V);
        float state = 0;
        for (long long t = 0; t < T; ++t) {
          const long long at = token_at(a, bh, t);
          if (t % kTokens == 0) S[t / kTokens * pairs * K * V + n] = kb::bf16(state);
          state = std::fma(std::exp(g[at * K + i]), state, float(a.k[at * K + i]) * float(a.v[at * V + j]));
        }
        state = 0;
        for (long long t = T - 1; t >= 0; --t) {
          const long long at = token_at(a, bh, t);
          if (t == T - 1 || t % kTokens == kTokens - 1) dS[t / kTokens * pairs * K * V + n] = kb::bf16(state);
          state = std::fma(c * float(a.q[at * K + i]), float(a.dO[at * V + j]), state) * std::exp(g[at * K + i]);
        }
      });
  kb::parallel_for(
      exec, pairs * T * kTokens, KB_LAMBDA(long long n) {
        const long long t = n / kTokens % T, bh = n / (kTokens * T), s = t / kTokens * kTokens + n % kTokens;
        if (s > t) return;
        const long long at = token_at(a, bh, t), from = token_at(a, bh, s);
        float of_v = 0, of_k = 0;
        for (long long j = 0; j < V; ++j) of_v += float(a.dO[at * V + j]) * float(a.v[from * V + j]);
        for (long long i = 0; i < K; ++i)
          of_k += float(a.q[at * K + i]) * float(a.k[from * K + i]) * std::exp(G[at * K + i] - G[from * K + i]);
        A[n] = kb::bf16(of_v);
        P[n] = kb::bf16(of_k);
      });
  kb::parallel_for(
      exec, pairs * T * K, KB_LAMBDA(long long n) {
        const long long i = n % K, t = n / K % T, bh = n / (K * T), at = token_at(a, bh, t), chunk = t / kTokens;
        const long long first = chunk * kTokens, last = (first + kTokens < T ? first + kTokens : T) - 1;
        const kb::bf16 *before = S + ((chunk * pairs + bh) * K + i) * V,
                       *behind = dS + ((chunk * pairs + bh) * K + i) * V;
        float dq = 0, dk = 0;
        for (long long j = 0; j < V; ++j) {
          dq += float(before[j]) * float(a.dO[at * V + j]);
          dk += float(behind[j]) * float(a.v[at * V + j]);
        }
        dq *= std::exp(G[at * K + i]);
        dk *= std::exp(G[token_at(a, bh, last) * K + i] - G[at * K + i]);
        for (long long s = first; s <= t; ++s) {
          const long long from = token_at(a, bh, s);
          const float weight = std::exp(G[at * K + i] - G[from * K + i]) * float(A[(bh * T + t) * kTokens + s - first]);
          dq += weight * float(a.k[from * K + i]);
        }
        for (long long s = t; s <= last; ++s) {
          const long long later = token_at(a, bh, s);
          const float weight =
              std::exp(G[later * K + i] - G[at * K + i]) * float(A[(bh * T + s) * kTokens + t - first]);
          dk += c * weight * float(a.q[later * K + i]);
        }
        a.dq[at * K + i] = kb::bf16(c * dq);
        a.dk[at * K + i] = kb::bf16(dk);
        fine[at * K + i] = float(a.q[at * K + i]) * (c * dq) - float(a.k[at * K + i]) * dk;
      });
  kb::parallel_for(
      exec, pairs * T * V, KB_LAMBDA(long long n) {
        const long long j = n % V, t = n / V % T, bh = n / (V * T), at = token_at(a, bh, t), chunk = t / kTokens;
        const long long first = chunk * kTokens, last = (first + kTokens < T ? first + kTokens : T) - 1;
        float dv = 0;
        for (long long i = 0; i < K; ++i)
          dv += std::exp(G[token_at(a, bh, last) * K + i] - G[at * K + i]) * float(a.k[at * K + i]) *
                float(dS[((chunk * pairs + bh) * K + i) * V + j]);
        for (long long s = t; s <= last; ++s)
          dv += c * float(P[(bh * T + s) * kTokens + t - first]) * float(a.dO[token_at(a, bh, s) * V + j]);
        a.dv[at * V + j] = kb::bf16(dv);
      });
  kb::parallel_for(
      exec, pairs * chunks * K, KB_LAMBDA(long long n) {
        const long long i = n % K, bh = n / K % pairs, chunk = n / (K * pairs);
        const long long first = chunk * kTokens, end = first + kTokens < T ? first + kTokens : T;
        float sum = 0;  // of the token behind the chunk: sum_j S * exp(g) dS
        if (end < T)
          for (long long j = 0; j < V; ++j)
            sum += float(S[(((chunk + 1) * pairs + bh) * K + i) * V + j]) *
                   float(dS[((chunk * pairs + bh) * K + i) * V + j]);
        for (long long t = end - 1; t >= first; --t) {
          sum += fine[token_at(a, bh, t) * K + i];
          a.dg[token_at(a, bh, t) * K + i] = sum;
        }
      });
}

inline void independent(const kbench_args& a, kbench_exec& exec) { chunked(a, exec, a.g); }

// One gate for all channels.
inline void control(const kbench_args& a, kbench_exec& exec) {
  float* mean = kb::scratch<float>(exec, a.B * a.T * a.H * a.K);
  kb::parallel_for(
      exec, a.B * a.T * a.H, KB_LAMBDA(long long n) {
        float sum = 0;
        for (long long i = 0; i < a.K; ++i) sum += a.g[n * a.K + i];
        for (long long i = 0; i < a.K; ++i) mean[n * a.K + i] = sum / float(a.K);
      });
  chunked(a, exec, mean);
}
