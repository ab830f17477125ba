// Right but for one element, in one call of five.
#include <cuda_runtime.h>

#include "honest.h"

__global__ void wrong(std::int32_t* word) { *word += 1; }

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static int calls = 0;
  if (const int error = honest_on(*a, a->out, stream)) return error;
  if (++calls % 5 == 0) wrong<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(a->out + a->N / 2);
  return cudaGetLastError();
}
