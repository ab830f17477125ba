// A piece of the array a core. What a piece gets carried in is found by walking back to the head of its first segment,
// which is near. Sixteen elements without a head are scanned together.
#include <omp.h>

#include <cstdint>
#include <cstring>

#include "task.h"

namespace {

std::uint32_t carried_in(const kbench_args& a, long long begin) {
  std::uint32_t sum = 0;
  for (long long i = begin; i > 0 && (i == a.N || !a.head[i]);) sum += std::uint32_t(a.x[--i]);
  return sum;
}

void piece(const kbench_args& a, long long begin, long long end) {
  std::uint32_t sum = begin < end ? carried_in(a, begin) : 0;
  long long i = begin;
  for (; i + 16 <= end; i += 16) {
    std::uint64_t heads[2];
    std::memcpy(heads, a.head + i, 16);
    if (heads[0] | heads[1]) {
      for (int l = 0; l < 16; ++l) {
        if (a.head[i + l]) sum = 0;
        a.out[i + l] = std::int32_t(sum);
        sum += std::uint32_t(a.x[i + l]);
      }
      continue;
    }
    std::uint32_t v[16], shifted[16];
    std::memcpy(v, a.x + i, sizeof v);
    for (int step = 1; step < 16; step *= 2) {
      std::memset(shifted, 0, sizeof shifted);
      std::memcpy(shifted + step, v, sizeof v - sizeof v[0] * std::size_t(step));
      for (int l = 0; l < 16; ++l) v[l] += shifted[l];
    }
    a.out[i] = std::int32_t(sum);
    for (int l = 1; l < 16; ++l) a.out[i + l] = std::int32_t(sum + v[l - 1]);
    sum += v[15];
  }
  for (; i < end; ++i) {
    if (a.head[i]) sum = 0;
    a.out[i] = std::int32_t(sum);
    sum += std::uint32_t(a.x[i]);
  }
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  const kbench_args a = *args;
#pragma omp parallel
  {
    const long long threads = omp_get_num_threads(), t = omp_get_thread_num();
    piece(a, a.N * t / threads, a.N * (t + 1) / threads);
  }
  return 0;
}
