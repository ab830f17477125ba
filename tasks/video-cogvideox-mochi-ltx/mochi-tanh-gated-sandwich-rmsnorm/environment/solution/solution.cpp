// Mochi tanh-gated residual of a normalised branch followed by a modulated RMSNorm
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long N = args->N;
  [[maybe_unused]] const long long C = args->C;
  [[maybe_unused]] const float eps = args->eps;
  [[maybe_unused]] const kb::bf16* const x = args->x;
  [[maybe_unused]] const kb::bf16* const r = args->r;
  [[maybe_unused]] const kb::bf16* const gate = args->gate;
  [[maybe_unused]] const kb::bf16* const scale = args->scale;
  [[maybe_unused]] kb::bf16* const x1 = args->x1;
  [[maybe_unused]] kb::bf16* const y = args->y;
  return 0;
}
