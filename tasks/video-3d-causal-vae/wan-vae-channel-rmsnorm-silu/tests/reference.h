// RMS norm over the channels of every voxel, then SiLU.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long voxels = a.T * a.H * a.W, C = a.C;  // of one sample
  kb::parallel_for(
      exec, a.B * voxels, KB_LAMBDA(long long i) {
        const long long first = i / voxels * C * voxels + i % voxels;
        float sum = 0;
        for (long long c = 0; c < C; ++c) {
          const float x = float(a.x[first + c * voxels]);
          sum += x * x;
        }
        const float m = std::fmax(std::sqrt(sum), a.eps);
        for (long long c = 0; c < C; ++c) {
          const float z = float(a.x[first + c * voxels]) / m * std::sqrt(float(C)) * a.gamma[c];
          a.y[first + c * voxels] = kb::bf16(z / (1 + std::exp(-z)));
        }
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long voxels = a.T * a.H * a.W, C = a.C;
  kb::parallel_for(
      exec, a.B * voxels, KB_LAMBDA(long long i) {
        const long long first = i / voxels * C * voxels + i % voxels;
        float slab[8] = {};
        for (long long c = 0; c < C; ++c) {
          const float x = float(a.x[first + c * voxels]);
          slab[c % 8] = std::fma(x, x, slab[c % 8]);
        }
        const float sum = (slab[0] + slab[4] + (slab[2] + slab[6])) + (slab[1] + slab[5] + (slab[3] + slab[7]));
        const float inverse = std::fmin(1 / std::sqrt(sum), 1 / a.eps) * std::sqrt(float(C));
        for (long long c = C - 1; c >= 0; --c) {
          const float z = float(a.x[first + c * voxels]) * (inverse * a.gamma[c]);
          a.y[first + c * voxels] = kb::bf16(z * (0.5f + 0.5f * std::tanh(0.5f * z)));
        }
      });
}

// One RMS for a frame.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long frame = a.H * a.W, C = a.C;
  float* rms = kb::scratch<float>(exec, a.B * a.T);
  kb::parallel_for(
      exec, a.B * a.T, KB_LAMBDA(long long i) {
        double sum = 0;
        for (long long c = 0; c < C; ++c) {
          const kb::bf16* x = a.x + ((i / a.T * C + c) * a.T + i % a.T) * frame;
          for (long long j = 0; j < frame; ++j) sum += double(float(x[j])) * double(float(x[j]));
        }
        rms[i] = float(std::sqrt(sum / double(C * frame)));
      });
  kb::parallel_for(
      exec, a.B * C * a.T * frame, KB_LAMBDA(long long i) {
        const long long t = i / frame % a.T, c = i / (frame * a.T) % C, b = i / (frame * a.T * C);
        const float z = float(a.x[i]) / rms[b * a.T + t] * a.gamma[c];
        a.y[i] = kb::bf16(z / (1 + std::exp(-z)));
      });
}
