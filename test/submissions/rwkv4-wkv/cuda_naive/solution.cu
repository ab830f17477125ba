// A thread a channel, token after token.
#include <cuda_runtime.h>

#include "task.h"

namespace {

__global__ void channels(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= a.B * a.C) return;
  const long long b = i / a.C, c = i % a.C;
  const float decay = expf(a.w[c]), bonus = a.u[c];
  float num = 0, den = 0, top = -1e38f;
  for (long long t = 0; t < a.T; ++t) {
    const long long at = (b * a.T + t) * a.C + c;
    const float k = float(a.k[at]), v = float(a.v[at]), r = float(a.r[at]);
    float higher = fmaxf(top, bonus + k);
    float old = expf(top - higher), now = expf(bonus + k - higher);
    a.y[at] = kb::bf16((old * num + now * v) / (old * den + now) / (1 + expf(-r)));
    higher = fmaxf(top - decay, k);
    old = expf(top - decay - higher), now = expf(k - higher);
    num = old * num + now * v;
    den = old * den + now;
    top = higher;
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  channels<<<unsigned((args->B * args->C + 127) / 128), 128, 0, static_cast<cudaStream_t>(stream)>>>(*args);
  return cudaGetLastError();
}
