// The verifier's own kernels, element by element: single source for the cpu device (threads) and the cuda device
// (launches).
//
// All work on 8-byte words of a region, little end first; the last word of a region whose size is no multiple of 8
// counts the missing bytes as zero. Offsets are relative to the region. A region starts at a multiple of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kbench/types.h"

namespace kbench::verify {

inline constexpr std::uint64_t kWordBytes = 8;
inline constexpr std::uint64_t kChunkBytes = 4096;  // the unit of a snapshot's order; one CUDA block copies one chunk
inline constexpr std::uint64_t kGuardBytes = 64 * 1024;  // guard band, each side of a shared tensor
inline constexpr int kFeistelRounds = 6;

KB_HD std::uint64_t words_of(std::uint64_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes; }
KB_HD std::uint64_t chunks_of(std::uint64_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

// A bijection of 64 bits that mixes well (splitmix64's finaliser).
KB_HD std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A word of a keyed stream: two rounds, so that neither the key nor other words follow from some of them by inspection.
KB_HD std::uint64_t keyed_word(std::uint64_t key, std::uint64_t index) {
  return mix64(mix64(index * 0x9e3779b97f4a7c15ULL + key) ^ key);
}

KB_HD std::uint64_t word_at(const std::byte* data, std::uint64_t bytes, std::uint64_t index) {
  const std::uint64_t at = index * kWordBytes;
  std::uint64_t word = 0;
  if (at + kWordBytes <= bytes) {
#ifdef __CUDA_ARCH__
    word = *reinterpret_cast<const std::uint64_t*>(data + at);
#else
    std::memcpy(&word, data + at, kWordBytes);
#endif
    return word;
  }
  for (std::uint64_t i = 0; at + i < bytes; ++i) word |= static_cast<std::uint64_t>(data[at + i]) << (8 * i);
  return word;
}

KB_HD void put_word(std::byte* data, std::uint64_t bytes, std::uint64_t index, std::uint64_t word) {
  const std::uint64_t at = index * kWordBytes;
  if (at + kWordBytes <= bytes) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<std::uint64_t*>(data + at) = word;
#else
    std::memcpy(data + at, &word, kWordBytes);
#endif
    return;
  }
  for (std::uint64_t i = 0; at + i < bytes; ++i) data[at + i] = static_cast<std::byte>(word >> (8 * i));
}

// Poison: random bytes by key and offset. Random, so that a submission cannot tell poison from an output it has already
// written.
KB_HD void poison_word(std::byte* data, std::uint64_t bytes, std::uint64_t index, std::uint64_t key) {
  put_word(data, bytes, index, keyed_word(key, index));
}

// How many bytes of this word are no longer the poison.
KB_HD int unpoisoned_in_word(const std::byte* data, std::uint64_t bytes, std::uint64_t index, std::uint64_t key) {
  const std::uint64_t left = bytes - index * kWordBytes;
  const int count = left < kWordBytes ? static_cast<int>(left) : static_cast<int>(kWordBytes);
  const std::uint64_t difference = word_at(data, bytes, index) ^ keyed_word(key, index);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += ((difference >> (8 * i)) & 0xff) != 0;
  return wrong;
}

// Hash of a region: the sum, modulo 2^64, of hash_word over all words, through hash_end. A sum, so that threads add in
// any order; position-dependent, so that swapped words show. The key is the device's secret: without it nobody can
// prepare a collision.
KB_HD std::uint64_t hash_word(std::uint64_t key, std::uint64_t index, std::uint64_t word) {
  return mix64(word ^ keyed_word(key, index));
}
KB_HD std::uint64_t hash_end(std::uint64_t key, std::uint64_t bytes, std::uint64_t sum) {
  return mix64(sum + keyed_word(key ^ 0x5851f42d4c957f2dULL, bytes));
}

// A secret order of n chunks: a true bijection of [0, n), by a Feistel network over the next power of four and cycle
// walking. The network permutes its domain whatever the round function, so walking from a point below n always comes
// back below n.
struct Permutation {
  std::uint64_t count, key;
  std::uint32_t half_bits;
};

KB_HD Permutation permutation(std::uint64_t count, std::uint64_t key) {
  std::uint32_t half_bits = 1;
  while (half_bits < 32 && (1ULL << (2 * half_bits)) < count) ++half_bits;
  return {count, key, half_bits};
}

KB_HD std::uint64_t permuted(const Permutation& p, std::uint64_t index) {
  const std::uint64_t mask = (1ULL << p.half_bits) - 1;
  do {
    std::uint64_t left = index >> p.half_bits, right = index & mask;
    for (int round = 0; round < kFeistelRounds; ++round) {
      const std::uint64_t next = left ^ (keyed_word(p.key + static_cast<std::uint64_t>(round), right) & mask);
      left = right;
      right = next;
    }
    index = (left << p.half_bits) | right;
  } while (index >= p.count);
  return index;
}

// Copies chunk `index` in the secret order; `thread` of `threads` takes its share of 8-byte words (cpu: 0 of 1).
KB_HD void copy_chunk(std::byte* to, const std::byte* from, std::uint64_t bytes, const Permutation& order,
                      std::uint64_t index, std::uint32_t thread, std::uint32_t threads) {
  const std::uint64_t start = permuted(order, index) * kChunkBytes;
  const std::uint64_t length = bytes - start < kChunkBytes ? bytes - start : kChunkBytes;
  for (std::uint64_t word = thread; word < words_of(length); word += threads)
    put_word(to + start, length, word, word_at(from + start, length, word));
}

}  // namespace kbench::verify
