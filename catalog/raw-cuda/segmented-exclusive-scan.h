// Segmented exclusive prefix sum: chunks, their carries, and the chunks again with what is carried in.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kChunk = 4096;
  const long long chunks = (a.N + kChunk - 1) / kChunk;
  std::uint32_t* carry = kb::scratch<std::uint32_t>(exec, chunks);  // first what a chunk carries out, then what it gets
  std::uint8_t* restarts = kb::scratch<std::uint8_t>(exec, chunks);
  kb::parallel_for(
      exec, chunks, KB_LAMBDA(long long c) {
        std::uint32_t sum = 0;
        std::uint8_t restarted = 0;
        for (long long i = c * kChunk; i < (c + 1) * kChunk && i < a.N; ++i) {
          if (a.head[i]) sum = 0, restarted = 1;
          sum += std::uint32_t(a.x[i]);
        }
        carry[c] = sum;
        restarts[c] = restarted;
      });
  kb::parallel_for(
      exec, 1, KB_LAMBDA(long long) {
        std::uint32_t sum = 0;
        for (long long c = 0; c < chunks; ++c) {
          const std::uint32_t out = carry[c];
          carry[c] = sum;
          sum = restarts[c] ? out : sum + out;
        }
      });
  kb::parallel_for(
      exec, chunks, KB_LAMBDA(long long c) {
        std::uint32_t sum = carry[c];
        for (long long i = c * kChunk; i < (c + 1) * kChunk && i < a.N; ++i) {
          if (a.head[i]) sum = 0;
          a.out[i] = std::int32_t(sum);
          sum += std::uint32_t(a.x[i]);
        }
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.N, KB_LAMBDA(long long i) {
        std::uint32_t sum = 0;
        for (long long j = i; j > 0 && !a.head[j];) sum += std::uint32_t(a.x[--j]);
        a.out[i] = std::int32_t(sum);
      });
}

// Never restarts.
inline void control(const kbench_args& a, kbench_exec& exec) {
  constexpr long long kChunk = 4096;
  const long long chunks = (a.N + kChunk - 1) / kChunk;
  std::uint32_t* carry = kb::scratch<std::uint32_t>(exec, chunks);
  kb::parallel_for(
      exec, chunks, KB_LAMBDA(long long c) {
        carry[c] = 0;
        for (long long i = c * kChunk; i < (c + 1) * kChunk && i < a.N; ++i) carry[c] += std::uint32_t(a.x[i]);
      });
  kb::parallel_for(
      exec, chunks, KB_LAMBDA(long long c) {
        std::uint32_t sum = 0;
        for (long long before = 0; before < c; ++before) sum += carry[before];
        for (long long i = c * kChunk; i < (c + 1) * kChunk && i < a.N; ++i) {
          a.out[i] = std::int32_t(sum);
          sum += std::uint32_t(a.x[i]);
        }
      });
}
