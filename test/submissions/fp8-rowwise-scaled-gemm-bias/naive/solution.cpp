// Both matrices widened once, then dot products of rows.
#include <vector>

#include "task.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  const long long M = a->M, N = a->N, K = a->K;
  std::vector<float> left(M * K), right(N * K);
#pragma omp parallel for
  for (long long i = 0; i < M * K; ++i) left[i] = float(a->A[i]);
#pragma omp parallel for
  for (long long i = 0; i < N * K; ++i) right[i] = float(a->B[i]);
#pragma omp parallel for
  for (long long m = 0; m < M; ++m)
    for (long long n = 0; n < N; ++n) {
      float lanes[16] = {};
      long long k = 0;
      for (; k + 16 <= K; k += 16)
        for (int l = 0; l < 16; ++l) lanes[l] += left[m * K + k + l] * right[n * K + k + l];
      float acc = 0;
      for (; k < K; ++k) acc += left[m * K + k] * right[n * K + k];
      for (float lane : lanes) acc += lane;
      a->C[m * N + n] = kb::bf16(acc * a->sa[m] * a->sb[n] + float(a->bias[n]));
    }
  return 0;
}
