// Costs the compiler more than anybody has.
template <int n, int m>
struct Bomb {
  static constexpr int value = Bomb<n - 1, m * 2>::value + Bomb<n - 1, m * 2 + 1>::value;
};
template <int m>
struct Bomb<0, m> {
  static constexpr int value = m;
};

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) { return honest(*a) + Bomb<24, 1>::value; }
