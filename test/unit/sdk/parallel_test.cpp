// The CPU side of the helpers that references are written with, on the context that reference.py uses.
#include "kbench/parallel.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "kbench/local_exec.h"

struct kbench_args {
  long long N;
  const int* x;
  int* y;
  long long* total;
};

namespace {

inline void reference(const kbench_args& a, kbench_exec& exec) {
  long long* twice = kb::scratch<long long>(exec, a.N);
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { twice[i] = 2LL * a.x[i]; });
  kb::parallel_for(
      exec, 1, KB_LAMBDA(long long) {
        *a.total = 0;
        for (long long i = 0; i < a.N; ++i) *a.total += twice[i];
      });
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { a.y[i] = static_cast<int>(*a.total) - a.x[i]; });
}

}  // namespace

KB_REFERENCE_EXPORTS

TEST_CASE("phases run in order, each over all indices") {
  std::vector<int> x(10'007), y(x.size());
  std::iota(x.begin(), x.end(), 1);
  long long total = -1;
  const kbench_args args{static_cast<long long>(x.size()), x.data(), y.data(), &total};
  kb::LocalExec exec;
  REQUIRE(kbench_reference(&args, exec.get()) == 0);
  CHECK(total == 10'007LL * 10'008);
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(y[i] == static_cast<int>(total) - x[i]);
}

TEST_CASE("nothing to do is done") {
  long long total = -1;
  const kbench_args args{0, nullptr, nullptr, &total};
  kb::LocalExec exec;
  CHECK(kbench_reference(&args, exec.get()) == 0);
  CHECK(total == 0);
}

TEST_CASE("memory that runs out is a return value") {
  kbench_exec exec{nullptr, nullptr, [](void*, unsigned long long) -> void* { return nullptr; }, nullptr};
  const kbench_args args{1, nullptr, nullptr, nullptr};
  CHECK(kbench_reference(&args, &exec) == kb::kOutOfMemory);
}

TEST_CASE("scratch is aligned to 256 bytes") {
  kb::LocalExec exec;
  for (int n = 0; n < 20; ++n) CHECK(reinterpret_cast<std::uintptr_t>(kb::scratch<char>(*exec.get(), n)) % 256 == 0);
}

TEST_CASE("atomic_add counts every iteration") {
  std::uint32_t count = 0, *at = &count;
  kb::LocalExec exec;
  kb::parallel_for(*exec.get(), 100'000, KB_LAMBDA(long long) { kb::atomic_add(at, 1); });
  CHECK(count == 100'000);
}
