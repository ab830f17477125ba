// DPM-Solver++(2M) SDE multistep update for a flow model, with data-prediction history
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long M = args->M;
  [[maybe_unused]] float* const x = args->x;
  [[maybe_unused]] const kb::bf16* const v = args->v;
  [[maybe_unused]] float* const m1 = args->m1;
  [[maybe_unused]] const kb::bf16* const nz = args->nz;
  [[maybe_unused]] const float* const sig = args->sig;
  return 0;
}
