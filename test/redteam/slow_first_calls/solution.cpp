// Slow for the first calls: whoever measures adaptively then measures less, or takes the good ones alone.
#include <unistd.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  if (++calls <= 4 || calls % 3 == 0) usleep(30'000);
  return honest(*a);
}
