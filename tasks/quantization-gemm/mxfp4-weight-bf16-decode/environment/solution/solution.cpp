// Decode GEMV over a stack of MXFP4 weight matrices with bf16 activations
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long L = args->L;
  [[maybe_unused]] const long long M = args->M;
  [[maybe_unused]] const long long N = args->N;
  [[maybe_unused]] const long long K = args->K;
  [[maybe_unused]] const kb::bf16* const X = args->X;
  [[maybe_unused]] const kb::e2m1x2* const W = args->W;
  [[maybe_unused]] const kb::e8m0* const S = args->S;
  [[maybe_unused]] kb::bf16* const Y = args->Y;
  return 0;
}
