// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): a block of 128 random bits from a
// counter and a key, with no state. Single source for CPU and CUDA; integers only, hence the same bits everywhere.
#pragma once

#include <cstdint>

#include "kbench/types.h"

namespace kbench::inputs {

struct PhiloxBlock {
  std::uint32_t word[4];
};

KB_HD PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ull * counter.word[0];
    const std::uint64_t product1 = 0xCD9E8D57ull * counter.word[2];
    counter = {
        {static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// A bijection of 64 bits that leaves no structure (the finaliser of SplitMix64).
KB_HD std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace kbench::inputs
