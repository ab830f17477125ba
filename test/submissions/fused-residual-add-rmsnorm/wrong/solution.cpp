// Right in all elements but the last one of y, whose sign is wrong.
#include <cmath>

#include "task.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
#pragma omp parallel for
  for (long long m = 0; m < a->M; ++m) {
    const long long row = m * a->C;
    float sum = 0;
    for (long long i = row; i < row + a->C; ++i) {
      const float t = float(a->x[i]) + float(a->res[i]);
      sum += t * t;
    }
    const float rms = std::sqrt(sum / float(a->C) + a->eps);
    for (long long i = row; i < row + a->C; ++i) {
      const float t = float(a->x[i]) + float(a->res[i]);
      a->res_out[i] = kb::bf16(t);
      a->y[i] = kb::bf16(t / rms * float(a->w[i - row]));
    }
  }
  a->y[a->M * a->C - 1].bits ^= 0x8000;
  return 0;
}
