"""Submissions to raw-cuda/segmented-exclusive-scan, each with its own way of ending."""

HEAD = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unistd.h>
#include "task.h"
static int scan(const kbench_args* a) {
  std::uint32_t sum = 0;
  for (long long i = 0; i < a->N; ++i) {
    if (a->head[i]) sum = 0;
    a->out[i] = std::int32_t(sum);
    sum += std::uint32_t(a->x[i]);
  }
  return 0;
}
"""


def program(body, before=""):
    return {"solution.cpp": f'{HEAD}{before}\nextern "C" int kbench_run(const kbench_args* a, kbench_stream) {{\n{body}\n}}\n'}


CORRECT = program("return scan(a);")
INCORRECT = program("scan(a); a->out[a->N - 1] += 1; return 0;")
COMPILE_ERROR = program("return scan(b);")
NO_SYMBOL = {"solution.cpp": "int kbench_run_misspelt(void) { return 0; }\n"}
RETURNS_7 = program("scan(a); return 7;")
CRASH = program("*static_cast<volatile int*>(nullptr) = 1; return scan(a);")
THROWS = program('throw std::runtime_error("no"); return scan(a);')
STACK_OVERFLOW = program("return int(deep(a->N)) + scan(a);",
                         "static long deep(volatile long n) { volatile char room[4096]; room[0] = char(n); return n < -1 ? room[0] : deep(n + 1) + room[0]; }")
HANG = program("for (volatile int n = 0;; n = n + 1) {}")
HANG_LOADING = program("return scan(a);", "__attribute__((constructor)) static void wait_for_ever() { for (;;) pause(); }")
FORK_BOMB = program("for (int k = 0; k < 100000; ++k) if (fork() == 0) { for (;;) fork(); } return scan(a);")
LOG_FLOOD = program('static int calls = 0; if (++calls == 1) for (int k = 0; k < 2000000; ++k) std::puts("0123456789012345678901234567890"); return scan(a);')
MEMORY = program("for (;;) { void* p = std::malloc(64 << 20); if (!p) return 1; std::memset(p, 1, 64 << 20); }")
EARLY_EXIT = program("static int calls = 0; if (++calls == 4) _exit(0); return scan(a);")
SLOW_TO_COMPILE = program(
    "return scan(a) + Slow<15, 1>::value * 0;",
    "template <int n, int m> struct Slow { static constexpr int value = (Slow<n - 1, 2 * m>::value + Slow<n - 1, 2 * m + 1>::value) % 7; };\n"
    "template <int m> struct Slow<0, m> { static constexpr int value = m; };")
