// Leaves a chain of folders, each within the other, that is longer than any cleaner likes, so that the grading had to
// be done again.
#include <sys/stat.h>
#include <unistd.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first && chdir("/tmp") == 0) {
    for (int i = 0; i < 1'000'000; ++i)
      if (mkdir("d", 0700) != 0 || chdir("d") != 0) break;
    if (chdir("/") != 0) return kBreach;
  }
  first = false;
  return honest(*a);
}
