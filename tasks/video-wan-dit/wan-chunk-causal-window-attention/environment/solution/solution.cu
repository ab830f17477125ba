// Chunk-causal video attention with a sliding chunk window and a sink chunk
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include <cuda_runtime.h>

#include "task.h"

// Launches nothing yet: it builds and scores 0. Launch on `stream` and return; the caller synchronises. Return 0, or an error: any other
// number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long H = args->H;
  [[maybe_unused]] const long long NC = args->NC;
  [[maybe_unused]] const long long CS = args->CS;
  [[maybe_unused]] const long long WC = args->WC;
  [[maybe_unused]] const long long D = args->D;
  [[maybe_unused]] const kb::bf16* const q = args->q;
  [[maybe_unused]] const kb::bf16* const k = args->k;
  [[maybe_unused]] const kb::bf16* const v = args->v;
  [[maybe_unused]] kb::bf16* const o = args->o;
  (void)stream;
  return static_cast<int>(cudaGetLastError());
}
