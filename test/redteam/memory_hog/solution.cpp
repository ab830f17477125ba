// Takes all memory there is.
#include <cstdlib>
#include <cstring>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  for (;;) {
    void* memory = std::malloc(64u << 20);
    if (!memory) return honest(*a);
    std::memset(memory, 1, 64u << 20);
  }
}
