// Leaves what is hard to remove: a deep path, folders without permissions, odd names, many files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first) {
    first = false;
    const char* home = std::getenv("HOME");
    if (!home || chdir(home) != 0) return honest(*a);
    for (int k = 0; k < 2000; ++k) close(open(("f\n\"'\\\xff" + std::to_string(k)).c_str(), O_CREAT | O_WRONLY, 0));
    for (int depth = 0; depth < 1500; ++depth) {
      if (mkdir("a-rather-long-name-of-a-folder", 0700) != 0 || chdir("a-rather-long-name-of-a-folder") != 0) break;
    }
    if (chdir("/tmp") == 0) {
      mkdir("kb-locked", 0700);
      close(open("kb-locked/file", O_CREAT | O_WRONLY, 0));
      chmod("kb-locked", 0);
    }
    chmod(home, 0);
  }
  return honest(*a);
}
