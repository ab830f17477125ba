// FLUX single-block output projection over [attention, GELU(MLP)] with gate and residual
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long L = args->L;
  [[maybe_unused]] const long long C = args->C;
  [[maybe_unused]] const long long FF = args->FF;
  [[maybe_unused]] const kb::bf16* const a = args->a;
  [[maybe_unused]] const kb::bf16* const h = args->h;
  [[maybe_unused]] const kb::bf16* const x = args->x;
  [[maybe_unused]] const kb::bf16* const gate = args->gate;
  [[maybe_unused]] const kb::bf16* const W2 = args->W2;
  [[maybe_unused]] const kb::bf16* const b2 = args->b2;
  [[maybe_unused]] kb::bf16* const out = args->out;
  return 0;
}
