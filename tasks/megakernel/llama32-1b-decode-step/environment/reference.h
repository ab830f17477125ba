// A decode step of Llama-3.2-1B, from token to logits.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline constexpr long long kKeys = 256;  // of the cache, that one iteration attends to

// bf(RMS(x) * g) of each of B rows of n.
inline void norm(kbench_exec& exec, const kb::bf16* x, const kb::bf16* g, kb::bf16* to, long long B, long long n,
                 float eps) {
  kb::parallel_for(
      exec, B, KB_LAMBDA(long long b) {
        float sum = 0;
        for (long long i = b * n; i < (b + 1) * n; ++i) sum += float(x[i]) * float(x[i]);
        const float rms = std::sqrt(sum / float(n) + eps);
        for (long long i = 0; i < n; ++i) to[b * n + i] = kb::bf16(float(x[b * n + i]) / rms * float(g[i]));
      });
}

// lin(x; W) of each of B rows of K, N outputs each, in fp32.
inline void linear(kbench_exec& exec, const kb::bf16* x, const kb::bf16* W, float* to, long long B, long long N,
                   long long K) {
  kb::parallel_for(
      exec, B * N, KB_LAMBDA(long long i) {
        const kb::bf16 *row = x + i / N * K, *w = W + i % N * K;
        float sum = 0;
        for (long long k = 0; k < K; ++k) sum += float(row[k]) * float(w[k]);
        to[i] = sum;
      });
}

// x = bf(x + bf(y))
inline void add(kbench_exec& exec, const float* y, kb::bf16* x, long long n) {
  kb::parallel_for(exec, n, KB_LAMBDA(long long i) { x[i] = kb::bf16(float(x[i]) + float(kb::bf16(y[i]))); });
}

// From one layer's lin(h; Wqkv): q rotated, and the layer's kn and vn.
inline void heads(const kbench_args& a, kbench_exec& exec, const float* qkv, kb::bf16* q, long long layer) {
  const long long all = a.HQ + 2 * a.HK, half = a.HD / 2;
  kb::parallel_for(
      exec, a.B * all * half, KB_LAMBDA(long long i) {
        const long long p = i % half, head = i / half % all, b = i / (half * all), HD = a.HD;
        const float angle = float(a.CT) * a.invf[p];
        const float low = float(kb::bf16(qkv[(b * all + head) * HD + p]));
        const float high = float(kb::bf16(qkv[(b * all + head) * HD + p + half]));
        const float c = head < a.HQ + a.HK ? std::cos(angle) : 1.0f, s = head < a.HQ + a.HK ? std::sin(angle) : 0.0f;
        kb::bf16* to = q + (b * a.HQ + head) * HD;
        if (head >= a.HQ) to = a.kn + ((layer * a.B + b) * a.HK + head - a.HQ) * HD;
        if (head >= a.HQ + a.HK) to = a.vn + ((layer * a.B + b) * a.HK + head - a.HQ - a.HK) * HD;
        to[p] = kb::bf16(low * c - high * s);
        to[p + half] = kb::bf16(high * c + low * s);
      });
}

// bf(attention) of every head. Scores are computed first, then chunks of kKeys, then the chunks are joined.
inline void attend(const kbench_args& a, kbench_exec& exec, const kb::bf16* q, kb::bf16* o, long long layer,
                   float* scores, float* sums, float* tops, float* weights) {
  const long long HD = a.HD, keys = a.CT + 1, chunks = (keys + kKeys - 1) / kKeys, group = a.HQ / a.HK;
  const kb::bf16 *kc = a.kc + layer * a.B * a.HK * a.CT * HD, *vc = a.vc + layer * a.B * a.HK * a.CT * HD;
  const kb::bf16 *kn = a.kn + layer * a.B * a.HK * HD, *vn = a.vn + layer * a.B * a.HK * HD;
  kb::parallel_for(
      exec, a.B * a.HQ * keys, KB_LAMBDA(long long i) {
        const long long s = i % keys, head = i / keys, shared = head / group;  // head: of all sequences
        const kb::bf16* k = s < a.CT ? kc + (shared * a.CT + s) * HD : kn + shared * HD;
        float sum = 0;
        for (long long d = 0; d < HD; ++d) sum += float(q[head * HD + d]) * float(k[d]);
        scores[i] = sum / std::sqrt(float(HD));
      });
  kb::parallel_for(
      exec, a.B * a.HQ * chunks * HD, KB_LAMBDA(long long i) {
        const long long d = i % HD, chunk = i / HD % chunks, head = i / (HD * chunks), shared = head / group;
        const long long first = chunk * kKeys, end = first + kKeys < keys ? first + kKeys : keys;
        float top = -INFINITY, weight = 0, sum = 0;
        for (long long s = first; s < end; ++s) top = std::fmax(top, scores[head * keys + s]);
        for (long long s = first; s < end; ++s) {
          const float p = std::exp(scores[head * keys + s] - top);
          weight += p;
          sum += p * float(s < a.CT ? vc[(shared * a.CT + s) * HD + d] : vn[shared * HD + d]);
        }
        sums[i] = sum;
        tops[i] = top;
        weights[i] = weight;
      });
  kb::parallel_for(
      exec, a.B * a.HQ * HD, KB_LAMBDA(long long i) {
        const long long first = i / HD * chunks * HD + i % HD;
        float top = -INFINITY, weight = 0, sum = 0;
        for (long long chunk = 0; chunk < chunks; ++chunk) top = std::fmax(top, tops[first + chunk * HD]);
        for (long long chunk = 0; chunk < chunks; ++chunk) {
          const float part = std::exp(tops[first + chunk * HD] - top);
          weight += part * weights[first + chunk * HD];
          sum += part * sums[first + chunk * HD];
        }
        o[i] = kb::bf16(sum / weight);
      });
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long B = a.B, DM = a.DM, width = a.HQ * a.HD, qkv_width = width + 2 * a.HK * a.HD;
  const long long chunks = (a.CT + kKeys) / kKeys, widest = qkv_width > 2 * a.FF ? qkv_width : 2 * a.FF;
  kb::bf16* x = kb::scratch<kb::bf16>(exec, B * DM);
  kb::bf16* normed = kb::scratch<kb::bf16>(exec, B * DM);
  kb::bf16* q = kb::scratch<kb::bf16>(exec, B * width);
  kb::bf16* o = kb::scratch<kb::bf16>(exec, B * width);
  kb::bf16* hidden = kb::scratch<kb::bf16>(exec, B * a.FF);
  float* out = kb::scratch<float>(exec, B * (widest > DM ? widest : DM));
  float* scores = kb::scratch<float>(exec, B * a.HQ * (a.CT + 1));
  float* sums = kb::scratch<float>(exec, B * width * chunks);
  float* tops = kb::scratch<float>(exec, B * width * chunks);
  float* weights = kb::scratch<float>(exec, B * width * chunks);
  kb::parallel_for(exec, B * DM, KB_LAMBDA(long long i) { x[i] = a.E[a.tok[i / DM] * DM + i % DM]; });
  for (long long l = 0; l < a.NL; ++l) {
    norm(exec, x, a.g1 + l * DM, normed, B, DM, a.eps);
    linear(exec, normed, a.Wqkv + l * qkv_width * DM, out, B, qkv_width, DM);
    heads(a, exec, out, q, l);
    attend(a, exec, q, o, l, scores, sums, tops, weights);
    linear(exec, o, a.Wo + l * DM * width, out, B, DM, width);
    add(exec, out, x, B * DM);
    norm(exec, x, a.g2 + l * DM, normed, B, DM, a.eps);
    linear(exec, normed, a.Wgu + l * 2 * a.FF * DM, out, B, 2 * a.FF, DM);
    kb::parallel_for(
        exec, B * a.FF, KB_LAMBDA(long long i) {
          const long long b = i / a.FF, f = i % a.FF;
          const float gate = float(kb::bf16(out[b * 2 * a.FF + f])), up = float(kb::bf16(out[(b * 2 + 1) * a.FF + f]));
          hidden[i] = kb::bf16(gate / (1 + std::exp(-gate)) * up);
        });
    linear(exec, hidden, a.Wd + l * DM * a.FF, out, B, DM, a.FF);
    add(exec, out, x, B * DM);
  }
  norm(exec, x, a.gf, normed, B, DM, a.eps);
  linear(exec, normed, a.E, a.logits, B, a.V, DM);
}
