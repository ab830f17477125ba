// A kernel writes to an address that is nobody's, in the fifth call.
#include <cuda_runtime.h>

#include "honest.h"

__global__ void wild(volatile int* at) { *at = 1; }

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static int calls = 0;
  if (++calls == 5) wild<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<int*>(0x7eadbeef0000ull));
  return honest_on(*a, a->out, stream);
}
