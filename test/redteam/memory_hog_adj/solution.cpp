// Takes all memory from many processes, each of which tells the kernel to kill somebody else first.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "honest.h"

static void spare_me() {
  for (const char* score : {"-1000", "-999", "0"}) {
    if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "w")) {
      std::fputs(score, file);
      std::fclose(file);
    }
  }
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  spare_me();
  for (int child = 0; child < 64; ++child) {
    if (fork() != 0) continue;
    spare_me();
    for (int k = 0; k < 64; ++k)
      if (void* memory = std::malloc(16u << 20)) std::memset(memory, 1, 16u << 20);
    pause();
  }
  sleep(3);
  return honest(*a);
}
