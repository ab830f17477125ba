// Stops itself and lets a child continue it later; what a verifier that waits in the wrong way would not survive.
#include <signal.h>
#include <unistd.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  if (++calls % 4 == 0) {
    const pid_t self = getpid();
    if (fork() == 0) {
      usleep(20'000);
      kill(self, SIGCONT);
      _exit(0);
    }
    kill(self, SIGSTOP);
  }
  return honest(*a);
}
