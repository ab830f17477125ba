// Fills every folder that can be written to, and keeps deleted files open.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "honest.h"

static void fill(const std::string& folder) {
  static char block[1 << 20];
  std::memset(block, 1, sizeof block);
  for (int number = 0; number < 8; ++number) {
    const std::string path = folder + "/kb-fill-" + std::to_string(number);
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    if (fd < 0) return;
    if (number % 2) unlink(path.c_str());
    for (int k = 0; k < 100'000 && write(fd, block, sizeof block) > 0; ++k) {
    }
  }
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first) {
    first = false;
    for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm", "/artefact", "/kbench/out", "/kbench"}) fill(folder);
    if (const char* home = std::getenv("HOME")) fill(home);
  }
  return honest(*a);
}
