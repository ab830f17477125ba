// What every attack on raw-cuda/segmented-exclusive-scan starts from: an honest kernel, the same for all, and what they
// share. kBreach is what an attack returns when it got at something it must not get at. It ends the grading as a
// runtime error, which no attack's expect.toml admits: a breach is never silent.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "task.h"

constexpr int kBreach = 42;

inline void honest_scan(const kbench_args& a, std::int32_t* out) {
  std::uint32_t sum = 0;
  for (long long i = 0; i < a.N; ++i) {
    if (a.head[i]) sum = 0;
    out[i] = std::int32_t(sum);
    sum += std::uint32_t(a.x[i]);
  }
}
inline int honest(const kbench_args& a) {
  honest_scan(a, a.out);
  return 0;
}
