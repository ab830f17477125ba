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
