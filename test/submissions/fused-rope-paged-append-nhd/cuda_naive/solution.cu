// A block a token, a thread a pair of elements.
#include <cuda_runtime.h>

#include "task.h"

namespace {

__global__ void tokens(const kbench_args a) {
  const long long n = blockIdx.x, half = a.D / 2, heads = a.Hq + 2 * a.Hk, slot = a.slot[n];
  const long long page = a.BS * a.Hk * a.D;  // elements of the keys of a page, and of its values
  const float* cs = a.cs + a.pos[n] * a.D;
  for (long long i = threadIdx.x; i < heads * half; i += blockDim.x) {
    const long long h = i / half, e = i % half;
    const kb::bf16* from = a.qkv + (n * heads + h) * a.D;
    if (h >= a.Hq && slot < 0) continue;
    const long long kv = h - a.Hq;
    kb::bf16* to = h < a.Hq ? a.qo + (n * a.Hq + h) * a.D
                            : a.pages + (slot / a.BS * 2 + kv / a.Hk) * page + (slot % a.BS * a.Hk + kv % a.Hk) * a.D;
    if (kv >= a.Hk) {
      to[e] = from[e];
      to[e + half] = from[e + half];
      continue;
    }
    const float x = float(from[e]), y = float(from[e + half]), c = cs[e], s = cs[e + half];
    to[e] = kb::bf16(x * c - y * s);
    to[e + half] = kb::bf16(y * c + x * s);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  tokens<<<unsigned(args->N), 256, 0, static_cast<cudaStream_t>(stream)>>>(*args);
  return cudaGetLastError();
}
