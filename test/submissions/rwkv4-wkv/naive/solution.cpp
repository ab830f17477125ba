// Channel after channel, token after token.
#include <algorithm>
#include <cmath>

#include "task.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
#pragma omp parallel for
  for (long long i = 0; i < a->B * a->C; ++i) {
    const long long b = i / a->C, c = i % a->C;
    const float decay = std::exp(a->w[c]), bonus = a->u[c];
    float num = 0, den = 0, top = -1e38f;
    for (long long t = 0; t < a->T; ++t) {
      const long long at = (b * a->T + t) * a->C + c;
      const float k = float(a->k[at]), v = float(a->v[at]), r = float(a->r[at]);
      float higher = std::max(top, bonus + k);
      float old = std::exp(top - higher), now = std::exp(bonus + k - higher);
      a->y[at] = kb::bf16((old * num + now * v) / (old * den + now) / (1 + std::exp(-r)));
      higher = std::max(top - decay, k);
      old = std::exp(top - decay - higher), now = std::exp(k - higher);
      num = old * num + now * v;
      den = old * den + now;
      top = higher;
    }
  }
  return 0;
}
