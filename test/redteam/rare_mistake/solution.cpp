// Right but for one element, in one call of five.
#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  honest(*a);
  if (++calls % 5 == 0) a->out[a->N / 2] += 1;
  return 0;
}
