// All-reduce over two GPUs fused with residual add and RMSNorm.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long D = a.D;
  float* rms = kb::scratch<float>(exec, a.TT);
  kb::parallel_for(
      exec, a.TT * D, KB_LAMBDA(long long i) {
        const kb::bf16 sum = kb::bf16(float(a.part[0][i]) + float(a.part[1][i]) + float(a.res[0][i]));
        for (int gpu = 0; gpu < kbench_gpus; ++gpu) a.res_out[gpu][i] = sum;
      });
  kb::parallel_for(
      exec, a.TT, KB_LAMBDA(long long t) {
        float sum = 0;
        for (long long i = t * D; i < (t + 1) * D; ++i) sum += float(a.res_out[0][i]) * float(a.res_out[0][i]);
        rms[t] = std::sqrt(sum / float(D) + a.eps);
      });
  kb::parallel_for(
      exec, a.TT * D, KB_LAMBDA(long long i) {
        const kb::bf16 normed = kb::bf16(float(a.res_out[0][i]) / rms[i / D] * float(a.w[0][i % D]));
        for (int gpu = 0; gpu < kbench_gpus; ++gpu) a.y[gpu][i] = normed;
      });
}
