// Fused neox RoPE on Q and K with paged K/V append (NHD pages)
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long N = args->N;
  [[maybe_unused]] const long long Hq = args->Hq;
  [[maybe_unused]] const long long Hk = args->Hk;
  [[maybe_unused]] const long long D = args->D;
  [[maybe_unused]] const long long P = args->P;
  [[maybe_unused]] const long long NB = args->NB;
  [[maybe_unused]] const long long BS = args->BS;
  [[maybe_unused]] const kb::bf16* const qkv = args->qkv;
  [[maybe_unused]] const std::int32_t* const pos = args->pos;
  [[maybe_unused]] const float* const cs = args->cs;
  [[maybe_unused]] const std::int32_t* const slot = args->slot;
  [[maybe_unused]] kb::bf16* const pages = args->pages;
  [[maybe_unused]] kb::bf16* const qo = args->qo;
  return 0;
}
