// Token after token, on one core.
#include <cstring>

#include "task.h"

namespace {

void rotate(const kb::bf16* from, const float* cs, long long D, kb::bf16* to) {
  for (long long e = 0; e < D / 2; ++e) {
    const float x = float(from[e]), y = float(from[e + D / 2]), c = cs[e], s = cs[e + D / 2];
    to[e] = kb::bf16(x * c - y * s);
    to[e + D / 2] = kb::bf16(y * c + x * s);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  const long long D = a->D, page = a->BS * a->Hk * D;  // elements of the keys of a page, and of its values
  const kb::bf16* from = a->qkv;
  kb::bf16* qo = a->qo;
  for (long long n = 0; n < a->N; ++n) {
    const float* cs = a->cs + a->pos[n] * D;
    for (long long h = 0; h < a->Hq; ++h, from += D, qo += D) rotate(from, cs, D, qo);
    const long long slot = a->slot[n];
    if (slot >= 0) {
      kb::bf16* key = a->pages + slot / a->BS * 2 * page + slot % a->BS * a->Hk * D;
      for (long long h = 0; h < a->Hk; ++h) rotate(from + h * D, cs, D, key + h * D);
      std::memcpy(key + page, from + a->Hk * D, a->Hk * D * sizeof(kb::bf16));
    }
    from += 2 * a->Hk * D;
  }
  return 0;
}
