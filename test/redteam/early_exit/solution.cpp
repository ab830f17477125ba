// Ends the process with success in the middle of the measurement.
#include <unistd.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  if (++calls == 5) _exit(0);
  return honest(*a);
}
