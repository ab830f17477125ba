// Packed variable-length causal GQA prefill
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long U = args->U;
  [[maybe_unused]] const long long NS = args->NS;
  [[maybe_unused]] const long long HQ = args->HQ;
  [[maybe_unused]] const long long HK = args->HK;
  [[maybe_unused]] const long long D = args->D;
  [[maybe_unused]] const long long TT = args->TT;
  [[maybe_unused]] const kb::bf16* const q = args->q;
  [[maybe_unused]] const kb::bf16* const k = args->k;
  [[maybe_unused]] const kb::bf16* const v = args->v;
  [[maybe_unused]] const std::int32_t* const cu = args->cu;
  [[maybe_unused]] kb::bf16* const o = args->o;
  [[maybe_unused]] float* const lse = args->lse;
  return 0;
}
