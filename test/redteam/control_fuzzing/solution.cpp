// A thread writes garbage to the protocol's page all the time: epochs from the future, unknown states, NaN, no end of
// text.
#include <cstdlib>
#include <thread>

#include "honest.h"
#include "pages.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static const Pages pages = find_pages();
  static bool started = false;
  if (!started && pages.from) {
    started = true;
    new std::thread([] {
      for (unsigned seed = 1;;) {
        auto* words = reinterpret_cast<volatile std::uint32_t*>(pages.from);
        for (int at = 0; at < 1024; ++at) {
          seed = seed * 1664525u + 1013904223u;
          words[at] = seed;
        }
      }
    });
  }
  return honest(*a);
}
