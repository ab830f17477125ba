// Wan CausalConv3d 3x3x3 with one-sided zero temporal padding
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long Ci = args->Ci;
  [[maybe_unused]] const long long Co = args->Co;
  [[maybe_unused]] const long long T = args->T;
  [[maybe_unused]] const long long H = args->H;
  [[maybe_unused]] const long long W = args->W;
  [[maybe_unused]] const kb::bf16* const x = args->x;
  [[maybe_unused]] const kb::bf16* const w = args->w;
  [[maybe_unused]] const float* const b = args->b;
  [[maybe_unused]] kb::bf16* const y = args->y;
  return 0;
}
