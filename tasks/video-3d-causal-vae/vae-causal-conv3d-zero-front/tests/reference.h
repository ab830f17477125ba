// Causal 3x3x3 convolution.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr int kOutputs = 8;  // channels an iteration computes: each input is loaded once for all of them
  const long long T = a.T, H = a.H, W = a.W, voxels = T * H * W, groups = (a.Co + kOutputs - 1) / kOutputs;
  float* weights = kb::scratch<float>(exec, groups * a.Ci * 27 * kOutputs);  // [group, c, tap, channel of the group]
  kb::parallel_for(
      exec, groups * a.Ci * 27 * kOutputs, KB_LAMBDA(long long i) {
        const long long tap = i / kOutputs % (a.Ci * 27), o = i / (kOutputs * a.Ci * 27) * kOutputs + i % kOutputs;
        weights[i] = o < a.Co ? float(a.w[o * a.Ci * 27 + tap]) : 0.0f;
      });
  kb::parallel_for(
      exec, a.B * groups * voxels, KB_LAMBDA(long long i) {
        const long long w = i % W, h = i / W % H, t = i / (W * H) % T, group = i / voxels % groups;
        const long long n = i / (voxels * groups);
        float sum[kOutputs] = {};
        for (long long c = 0; c < a.Ci; ++c) {
          const kb::bf16* x = a.x + (n * a.Ci + c) * voxels;
          for (int tap = 0; tap < 27; ++tap) {
            const long long ti = t - 2 + tap / 9, hi = h - 1 + tap / 3 % 3, wi = w - 1 + tap % 3;
            if (ti < 0 || hi < 0 || hi >= H || wi < 0 || wi >= W) continue;
            const float value = float(x[(ti * H + hi) * W + wi]);
            const float* weight = weights + ((group * a.Ci + c) * 27 + tap) * kOutputs;
            for (int o = 0; o < kOutputs; ++o) sum[o] += value * weight[o];
          }
        }
        for (long long o = 0; o < kOutputs && group * kOutputs + o < a.Co; ++o) {
          const long long channel = group * kOutputs + o;
          a.y[(n * a.Co + channel) * voxels + i % voxels] = kb::bf16(a.b[channel] + sum[o]);
        }
      });
}

// kbench: private from here

// One output element; `front` frames of zeros stand before the first one.
KB_HD void convolve(const kbench_args& a, long long i, long long front) {
  const long long T = a.T, H = a.H, W = a.W, voxels = T * H * W;
  const long long w = i % W, h = i / W % H, t = i / (W * H) % T, o = i / voxels % a.Co, n = i / (voxels * a.Co);
  float sum = a.b[o];
  for (int tap = 26; tap >= 0; --tap) {
    const long long ti = t - front + tap / 9, hi = h - 1 + tap / 3 % 3, wi = w - 1 + tap % 3;
    if (ti < 0 || ti >= T || hi < 0 || hi >= H || wi < 0 || wi >= W) continue;
    float part = 0;
    for (long long c = 0; c < a.Ci; ++c)
      part = std::fma(float(a.x[(n * a.Ci + c) * voxels + (ti * H + hi) * W + wi]),
                      float(a.w[(o * a.Ci + c) * 27 + tap]), part);
    sum += part;
  }
  a.y[i] = kb::bf16(sum);
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B * a.Co * a.T * a.H * a.W, KB_LAMBDA(long long i) { convolve(a, i, 2); });
}

// A frame of zeros on either side.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.B * a.Co * a.T * a.H * a.W, KB_LAMBDA(long long i) { convolve(a, i, 1); });
}
