#include "verifier/device/cpu_cache.h"

#include <algorithm>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace kbench::verify {
namespace {

constexpr std::uint64_t kFactor = 4;  // times the caches' size
constexpr std::uint64_t kShare = 8;   // one part in so many of the memory at most: the rest is the task's
constexpr std::uint64_t kMost = 1ULL << 30, kMostBesideDropped = 32ULL << 20;
#ifdef __x86_64__
constexpr std::uint64_t kLineBytes = 64;
#endif

}  // namespace

#ifdef __x86_64__
bool can_drop_lines() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

// Not clflush, which waits for each line before it takes the next.
__attribute__((target("clflushopt"))) void drop_lines(Region region) {
  _mm_mfence();
  for (std::uint64_t at = 0; at < region.bytes; at += kLineBytes) _mm_clflushopt(region.data + at);
  if (region.bytes > 0) _mm_clflushopt(region.data + region.bytes - 1);
  _mm_mfence();
}
#else
bool can_drop_lines() { return false; }
void drop_lines(Region) {}
#endif

std::uint64_t evicted_bytes(std::uint64_t cache_bytes, std::uint64_t memory_bytes, bool lines_dropped) {
  return std::min({kFactor * cache_bytes, lines_dropped ? kMostBesideDropped : kMost, memory_bytes / kShare});
}

// Twice its size empties a cache that replaces what it has not used for long; less leaves a part of it.
std::string eviction_warning(std::uint64_t cache_bytes, std::uint64_t evicted, bool lines_dropped) {
  if (lines_dropped || evicted >= 2 * cache_bytes) return "";
  return "caches are not emptied between calls: they hold " + std::to_string(cache_bytes >> 20) +
         " MiB, of which this processor drops none by name, and " + std::to_string(evicted >> 20) + " MiB are read";
}

}  // namespace kbench::verify
