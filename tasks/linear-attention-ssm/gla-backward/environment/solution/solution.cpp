// Gated linear attention backward (dq, dk, dv, dgate)
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long T = args->T;
  [[maybe_unused]] const long long H = args->H;
  [[maybe_unused]] const long long K = args->K;
  [[maybe_unused]] const long long V = args->V;
  [[maybe_unused]] const kb::bf16* const q = args->q;
  [[maybe_unused]] const kb::bf16* const k = args->k;
  [[maybe_unused]] const kb::bf16* const v = args->v;
  [[maybe_unused]] const float* const g = args->g;
  [[maybe_unused]] const kb::bf16* const dO = args->dO;
  [[maybe_unused]] kb::bf16* const dq = args->dq;
  [[maybe_unused]] kb::bf16* const dk = args->dk;
  [[maybe_unused]] kb::bf16* const dv = args->dv;
  [[maybe_unused]] float* const dg = args->dg;
  return 0;
}
