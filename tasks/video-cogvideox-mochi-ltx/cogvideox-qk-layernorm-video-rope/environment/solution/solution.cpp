// CogVideoX QK LayerNorm with 3D RoPE on video tokens only
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long B = args->B;
  [[maybe_unused]] const long long T = args->T;
  [[maybe_unused]] const long long GF = args->GF;
  [[maybe_unused]] const long long GH = args->GH;
  [[maybe_unused]] const long long GW = args->GW;
  [[maybe_unused]] const long long H = args->H;
  [[maybe_unused]] const long long D8 = args->D8;
  [[maybe_unused]] const float eps = args->eps;
  [[maybe_unused]] const float theta = args->theta;
  [[maybe_unused]] const kb::bf16* const qkv = args->qkv;
  [[maybe_unused]] const kb::bf16* const wq = args->wq;
  [[maybe_unused]] const kb::bf16* const cq = args->cq;
  [[maybe_unused]] const kb::bf16* const wk = args->wk;
  [[maybe_unused]] const kb::bf16* const ck = args->ck;
  [[maybe_unused]] kb::bf16* const q = args->q;
  [[maybe_unused]] kb::bf16* const k = args->k;
  [[maybe_unused]] kb::bf16* const v = args->v;
  return 0;
}
