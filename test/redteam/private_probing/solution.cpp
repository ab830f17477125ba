// Compiles if, and only if, something private can be seen while compiling; otherwise an honest kernel that looks again
// when it runs.
#if __has_include("/tests/reference.h") || __has_include("/tests/task.json") || __has_include("/var/run/docker.sock")
#define SEEN_WHILE_COMPILING 1
#else
#define SEEN_WHILE_COMPILING 0
#endif

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  if (SEEN_WHILE_COMPILING) return kBreach;
  for (const char* path :
       {"/tests/reference.h", "/tests/task.json", "/tests/reference-cpu.so", "/kbench/tests/task.json", "/etc/shadow",
        "/var/run/docker.sock", "/kbench/out/events.ndjson", "/kbench/report/report.sock"}) {
    const int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd >= 0) return kBreach;
  }
  for (const char* folder : {"/tests", "/kbench", "/kbench/out", "/kbench/report", "/root"})
    if (DIR* entries = opendir(folder)) {
      closedir(entries);
      return kBreach;
    }
  return honest(*a);
}
