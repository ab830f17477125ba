// Keys of a prefix cache: a polynomial hash modulo 2^64, carried from block to block.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline constexpr std::uint64_t kMultiplier = 6364136223846793005u;

KB_HD std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 13787848793156543929u;
  z = (z ^ (z >> 27)) * 10723151780598845931u;
  return z ^ (z >> 31);
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        std::uint64_t h = a.seed[b];
        for (long long s = 0; s < a.S; ++s) {
          h = h * kMultiplier + std::uint64_t(a.tok[b * a.S + s]) + 1;  // Horner: M^BS and the sum at once
          if (s % a.BS == a.BS - 1) a.key[(b * a.S + s) / a.BS] = mix(h);
        }
      });
}
