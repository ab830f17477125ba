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

// kbench: private from here

// Row t of GPU `gpu`: its own partial sum, the peer's times `share`, the residual.
KB_HD void row_on(const kbench_args& a, long long t, int gpu, double share) {
  const long long D = a.D;
  double squares = 0;
  for (long long i = t * D; i < (t + 1) * D; ++i) {
    const double sum = share * double(float(a.part[1 - gpu][i])) + double(float(a.res[gpu][i]));
    const float r = float(kb::bf16(float(sum + double(float(a.part[gpu][i])))));
    a.res_out[gpu][i] = kb::bf16(r);
    squares += double(r) * double(r);
  }
  const float scale = float(1 / std::sqrt(squares / double(D) + double(a.eps)));
  for (long long d = 0; d < D; ++d)
    a.y[gpu][t * D + d] = kb::bf16(float(a.res_out[gpu][t * D + d]) * (scale * float(a.w[gpu][d])));
}

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, kbench_gpus * a.TT, KB_LAMBDA(long long i) { row_on(a, i % a.TT, int(i / a.TT), 1); });
}

// Without the peer.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, kbench_gpus * a.TT, KB_LAMBDA(long long i) { row_on(a, i % a.TT, int(i / a.TT), 0); });
}
