// Merge of partial attention states by log-sum-exp
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include <cuda_runtime.h>

#include "task.h"

// Launches nothing yet: it builds and scores 0. Launch on `stream` and return; the caller synchronises. Return 0, or an error: any other
// number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  [[maybe_unused]] const long long S = args->S;
  [[maybe_unused]] const long long NT = args->NT;
  [[maybe_unused]] const long long H = args->H;
  [[maybe_unused]] const long long D = args->D;
  [[maybe_unused]] const kb::bf16* const v = args->v;
  [[maybe_unused]] const float* const lse = args->lse;
  [[maybe_unused]] kb::bf16* const o = args->o;
  [[maybe_unused]] float* const out_lse = args->out_lse;
  (void)stream;
  return static_cast<int>(cudaGetLastError());
}
