// The kernels both devices share: what the protocol relies on, proved on the processor.
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "verifier/device/kernels.h"

using namespace kbench::verify;

TEST_CASE("the secret order visits every chunk exactly once") {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t n = 0; n <= 300; ++n) counts.push_back(n);
  for (const std::uint64_t n : {1000, 1023, 1024, 1025, 4095, 4097, 65535, 65536, 65537, 100'003, 1'000'003})
    counts.push_back(n);
  for (const std::uint64_t n : counts) {
    const Permutation order = permutation(n, 0x1234567 + n);
    std::vector<bool> seen(n);
    std::uint64_t visited = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t at = permuted(order, i);
      REQUIRE(at < n);
      REQUIRE_FALSE(seen[at]);
      seen[at] = true;
      ++visited;
    }
    REQUIRE(visited == n);
  }
}

TEST_CASE("the secret order depends on its key and is not the natural one") {
  constexpr std::uint64_t kCount = 10'000;
  const Permutation a = permutation(kCount, 1), b = permutation(kCount, 2);
  int same = 0, fixed = 0, neighbours = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    same += permuted(a, i) == permuted(b, i);
    fixed += permuted(a, i) == i;
    neighbours += i > 0 && permuted(a, i) == permuted(a, i - 1) + 1;
  }
  CHECK(same < 10);
  CHECK(fixed < 10);
  CHECK(neighbours < 10);
}

TEST_CASE("poison is found whole, and every changed byte is counted") {
  for (const std::uint64_t bytes : {0, 1, 7, 8, 9, 63, 64, 1001}) {
    std::vector<std::byte> data(bytes + 16, std::byte{0x5a});
    for (std::uint64_t word = 0; word < words_of(bytes); ++word) poison_word(data.data(), bytes, word, 42);
    const auto wrong = [&](std::uint64_t key) {
      int count = 0;
      for (std::uint64_t word = 0; word < words_of(bytes); ++word)
        count += unpoisoned_in_word(data.data(), bytes, word, key);
      return count;
    };
    CHECK(wrong(42) == 0);
    for (std::uint64_t i = bytes; i < data.size(); ++i) CHECK(data[i] == std::byte{0x5a});
    for (std::uint64_t i = 0; i < bytes; ++i) {
      data[i] ^= std::byte{1};
      REQUIRE(wrong(42) == 1);
      data[i] ^= std::byte{1};
    }
    if (bytes >= 63) CHECK(wrong(43) > static_cast<int>(bytes) * 9 / 10);
  }
}

TEST_CASE("the hash sees every bit, every place and the length, in whatever order it is summed") {
  std::vector<std::byte> data(1003);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  const auto hash = [&](std::uint64_t bytes, bool backwards = false) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < words_of(bytes); ++i) {
      const std::uint64_t word = backwards ? words_of(bytes) - 1 - i : i;
      sum += hash_word(99, word, word_at(data.data(), bytes, word));
    }
    return hash_end(99, bytes, sum);
  };
  const std::uint64_t whole = hash(1003);
  CHECK(hash(1003, true) == whole);
  std::set<std::uint64_t> seen{whole};
  for (std::size_t i = 0; i < 1003; ++i)
    for (int bit = 0; bit < 8; bit += 3) {
      data[i] ^= std::byte{1} << bit;
      CHECK(seen.insert(hash(1003)).second);
      data[i] ^= std::byte{1} << bit;
    }
  for (int i = 0; i < 8; ++i) std::swap(data[static_cast<std::size_t>(i)], data[static_cast<std::size_t>(i + 64)]);
  CHECK(hash(1003) != whole);
  // A zero byte more is another region, also within the last word.
  std::fill(data.begin(), data.end(), std::byte{0});
  for (std::uint64_t bytes = 0; bytes < 40; ++bytes) CHECK(seen.insert(hash(bytes)).second);
}

TEST_CASE("a copy in the secret order, by however many threads, is whole and stays inside") {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{5}, kChunkBytes, kChunkBytes + 1, 7 * kChunkBytes - 3}) {
    std::vector<std::byte> from(bytes), to(bytes + 8, std::byte{0x77});
    for (std::uint64_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i ^ (i >> 8));
    const Permutation order = permutation(chunks_of(bytes), 5);
    for (std::uint64_t chunk = 0; chunk < chunks_of(bytes); ++chunk)
      for (std::uint32_t thread = 0; thread < 32; ++thread)
        copy_chunk(to.data(), from.data(), bytes, order, chunk, thread, 32);
    CHECK(std::equal(from.begin(), from.end(), to.begin()));
    for (std::uint64_t i = bytes; i < to.size(); ++i) CHECK(to[i] == std::byte{0x77});
  }
}
