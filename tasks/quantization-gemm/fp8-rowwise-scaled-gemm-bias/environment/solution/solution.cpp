// FP8 E4M3 GEMM with per-token and per-channel scales and bias
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long M = args->M;
  [[maybe_unused]] const long long N = args->N;
  [[maybe_unused]] const long long K = args->K;
  [[maybe_unused]] const kb::e4m3* const A = args->A;
  [[maybe_unused]] const float* const sa = args->sa;
  [[maybe_unused]] const kb::e4m3* const B = args->B;
  [[maybe_unused]] const float* const sb = args->sb;
  [[maybe_unused]] const kb::bf16* const bias = args->bias;
  [[maybe_unused]] kb::bf16* const C = args->C;
  return 0;
}
