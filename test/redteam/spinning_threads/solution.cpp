// Keeps every core busy between calls, to slow the verifier down where that might be subtracted or retried.
#include <thread>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool started = false;
  if (!started) {
    started = true;
    for (unsigned k = 0; k < 2 * std::thread::hardware_concurrency(); ++k) {
      new std::thread([] {
        for (volatile unsigned long n = 0;; n = n + 1) {
        }
      });
    }
  }
  return honest(*a);
}
