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

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kChunk = 8;  // blocks
  const long long blocks = a.S / a.BS, chunks = (blocks + kChunk - 1) / kChunk;
  std::uint64_t* multiplier = kb::scratch<std::uint64_t>(exec, a.B * chunks);
  std::uint64_t* addend = kb::scratch<std::uint64_t>(exec, a.B * chunks);
  kb::parallel_for(
      exec, a.B * chunks, KB_LAMBDA(long long i) {
        const long long b = i / chunks, first = i % chunks * kChunk * a.BS, end = first + kChunk * a.BS;
        std::uint64_t power = 1, sum = 0;  // from the chunk's last token backwards
        for (long long s = (end < a.S ? end : a.S) - 1; s >= first; --s) {
          sum += (std::uint64_t(a.tok[b * a.S + s]) + 1) * power;
          power *= kMultiplier;
        }
        multiplier[i] = power;
        addend[i] = sum;
      });
  kb::parallel_for(
      exec, a.B * chunks, KB_LAMBDA(long long i) {
        const long long b = i / chunks, chunk = i % chunks;
        std::uint64_t power = 1, sum = 0;  // of all chunks before this one, the nearest first
        for (long long c = chunk - 1; c >= 0; --c) {
          sum += addend[b * chunks + c] * power;
          power *= multiplier[b * chunks + c];
        }
        std::uint64_t h = a.seed[b] * power + sum;
        for (long long block = chunk * kChunk; block < (chunk + 1) * kChunk && block < blocks; ++block) {
          for (long long j = 0; j < a.BS; ++j)
            h = h * kMultiplier + std::uint64_t(a.tok[b * a.S + block * a.BS + j]) + 1;
          a.key[b * blocks + block] = mix(h);
        }
      });
}

// Every block starts from the seed.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B * (a.S / a.BS), KB_LAMBDA(long long i) {
        std::uint64_t h = a.seed[i / (a.S / a.BS)];
        for (long long j = 0; j < a.BS; ++j) h = h * kMultiplier + std::uint64_t(a.tok[i * a.BS + j]) + 1;
        a.key[i] = mix(h);
      });
}
