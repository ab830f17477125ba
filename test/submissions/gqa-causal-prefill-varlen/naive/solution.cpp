// All scores of a query, then their softmax, then the sum over the values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "task.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  const long long D = a->D;
  const float scale = 1 / std::sqrt(float(D));
  for (long long n = 0; n < a->NS; ++n) {
#pragma omp parallel for schedule(dynamic)
    for (long long t = a->cu[n]; t < a->cu[n + 1]; ++t) {
      std::vector<float> p(static_cast<std::size_t>(t + 1 - a->cu[n])), sum(static_cast<std::size_t>(D));
      for (long long h = 0; h < a->HQ; ++h) {
        const long long hk = h / (a->HQ / a->HK), at = t * a->HQ + h;
        float top = -INFINITY, weight = 0;
        for (std::size_t s = 0; s < p.size(); ++s) {
          const kb::bf16* k = a->k + ((a->cu[n] + static_cast<long long>(s)) * a->HK + hk) * D;
          p[s] = 0;
          for (long long d = 0; d < D; ++d) p[s] += float(a->q[at * D + d]) * float(k[d]);
          p[s] *= scale;
          top = std::max(top, p[s]);
        }
        std::fill(sum.begin(), sum.end(), 0.0f);
        for (std::size_t s = 0; s < p.size(); ++s) {
          const kb::bf16* v = a->v + ((a->cu[n] + static_cast<long long>(s)) * a->HK + hk) * D;
          p[s] = std::exp(p[s] - top);
          weight += p[s];
          for (long long d = 0; d < D; ++d) sum[static_cast<std::size_t>(d)] += p[s] * float(v[d]);
        }
        for (long long d = 0; d < D; ++d) a->o[at * D + d] = kb::bf16(sum[static_cast<std::size_t>(d)] / weight);
        a->lse[at] = top + std::log(weight);
      }
    }
  }
  return 0;
}
