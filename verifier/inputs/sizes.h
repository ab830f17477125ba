// Finish::sizes and Finish::offsets: `count` whole numbers in proportion to random weights, each in [least, largest],
// with an exact total; or their running sums. Single source for CPU and CUDA; included by generate.h.
//
// What the upper bound cuts off goes to the following numbers, the rest to whoever still has room, from the front. In
// terms of running sums, for 1-based i: R(i), in proportion to the weights alone, is known once the weights are summed;
// P(i) = max(0, i*largest - R(i), …, of all before too) is what is missing up to i to the largest sum possible; and
//   Q(i) = i*largest - max(0, P(i) - C)       where C = total - (count*largest - P(count)) is what goes to the front.
// A sum and a maximum over what comes before: both by chunks, in five phases, three where `largest` bounds nothing.
#pragma once

#include <cstdint>

#include "verifier/inputs/finish.h"

namespace kbench::inputs {

inline constexpr std::int64_t kSizesChunkMin = 256, kSizesChunksMax = 4096;

struct Sizes {
  std::int64_t count, chunk, chunks;
  double total, least, largest;
  bool bounded;

  KB_HD explicit Sizes(const Program& program)
      : count(static_cast<std::int64_t>(program.finish_arguments[0])),
        chunk((count + kSizesChunksMax - 1) / kSizesChunksMax),
        total(program.finish_arguments[1]),
        least(program.finish_arguments[2]),
        largest(program.finish_arguments[3]),
        bounded(largest < total) {
    if (chunk < kSizesChunkMin) chunk = kSizesChunkMin;
    chunks = (count + chunk - 1) / chunk;
  }
  // Doubles of scratch a row: sums of the weights before each chunk and of all, likewise P, and C.
  KB_HD std::int64_t scratch() const { return 2 * (chunks + 1); }
  KB_HD int phases() const { return bounded ? 5 : 3; }
};

// Calls use(i, R(i+1)) for the numbers of one chunk, from 0.
template <class Use>
KB_HD void running_sums(const Program& program, const Sizes& sizes, std::uint64_t seed, const void* const* reads,
                        const RowView& row, std::int64_t number, const double* sums, Use use) {
  const double shared = sub(sizes.total, mul(sizes.least, static_cast<double>(sizes.count)));
  const double all = sums[sizes.chunks] > 0 ? sums[sizes.chunks] : 1;
  double part = 0;
  for (std::int64_t i = number * sizes.chunk; i < (number + 1) * sizes.chunk && i < sizes.count; ++i) {
    part = add(part, element_value(program, seed, row.at(i), reads));
    const double reached = add(sums[number], part);
    const double until = i + 1 == sizes.count ? shared : floor_of(mul(shared, div(reached, all)));
    use(i, add(mul(sizes.least, static_cast<double>(i + 1)), until));
  }
}

KB_HD void sizes_weigh(const Program& program, const Sizes& sizes, std::uint64_t seed, const void* const* reads,
                       const RowView& row, std::int64_t number, double* sums) {
  double sum = 0;
  for (std::int64_t i = number * sizes.chunk; i < (number + 1) * sizes.chunk && i < sizes.count; ++i)
    sum = add(sum, element_value(program, seed, row.at(i), reads));
  sums[number] = sum;
}

KB_HD void sizes_store(const Program& program, std::uint64_t seed, const void* const* reads, const RowView& row,
                       std::int64_t i, double value) {
  row.set(i, value);
  if (program.total_length == program.length) return;
  row.set(i, run(program, program.length, program.total_length, seed, row.at(i), reads, row.get(i)));
}

KB_HD void sizes_write(const Program& program, const Sizes& sizes, std::uint64_t seed, const void* const* reads,
                       const RowView& row, std::int64_t number, const double* sums, const double* missing) {
  const auto sum_to = [&](std::int64_t i, double p) {  // Q(i)
    const double beyond = sub(p, missing[sizes.chunks]);
    return sub(mul(static_cast<double>(i), sizes.largest), beyond > 0 ? beyond : 0);
  };
  const std::int64_t first = number * sizes.chunk;
  double p = sizes.bounded ? missing[number] : 0, before = 0;
  if (sizes.bounded) {
    before = sum_to(first, p);
  } else if (number > 0) {  // R(first)
    const double shared = sub(sizes.total, mul(sizes.least, static_cast<double>(sizes.count)));
    const double all = sums[sizes.chunks] > 0 ? sums[sizes.chunks] : 1;
    before = add(mul(sizes.least, static_cast<double>(first)), floor_of(mul(shared, div(sums[number], all))));
  }
  if (program.finish == Finish::offsets && number == 0) sizes_store(program, seed, reads, row, 0, 0);
  running_sums(program, sizes, seed, reads, row, number, sums, [&](std::int64_t i, double r) {
    double q = r;
    if (sizes.bounded) {
      const double here = sub(mul(static_cast<double>(i + 1), sizes.largest), r);
      p = here > p ? here : p;
      q = sum_to(i + 1, p);
    }
    if (program.finish == Finish::offsets)
      sizes_store(program, seed, reads, row, i + 1, q);
    else
      sizes_store(program, seed, reads, row, i, sub(q, before));
    before = q;
  });
}

// One unit of one phase: a chunk, or in phases 1 and 3 a whole row.
KB_HD void sizes_unit(const Program& program, std::uint64_t seed, int phase, std::int64_t unit,
                      const void* const* reads, void* out, double* scratch) {
  const Sizes sizes(program);
  if (!sizes.bounded && phase == 2) phase = 4;
  const bool whole = phase == 1 || phase == 3;
  const std::int64_t number = whole ? 0 : unit % sizes.chunks, line = whole ? unit : unit / sizes.chunks;
  const RowView row = row_of(program, line, out);
  double* sums = scratch + line * sizes.scratch();
  double* missing = sums + sizes.chunks + 1;
  switch (phase) {
    case 0:
      sizes_weigh(program, sizes, seed, reads, row, number, sums);
      break;
    case 1: {
      double sum = 0;
      for (std::int64_t c = 0; c < sizes.chunks; ++c) {
        const double here = sums[c];
        sums[c] = sum;
        sum = add(sum, here);
      }
      sums[sizes.chunks] = sum;
      break;
    }
    case 2: {
      double p = 0;
      running_sums(program, sizes, seed, reads, row, number, sums, [&](std::int64_t i, double r) {
        const double here = sub(mul(static_cast<double>(i + 1), sizes.largest), r);
        p = here > p ? here : p;
      });
      missing[number] = p;
      break;
    }
    case 3: {
      double p = 0;
      for (std::int64_t c = 0; c < sizes.chunks; ++c) {
        const double here = missing[c];
        missing[c] = p;
        p = here > p ? here : p;
      }
      missing[sizes.chunks] = sub(sizes.total, sub(mul(static_cast<double>(sizes.count), sizes.largest), p));
      break;
    }
    default:
      sizes_write(program, sizes, seed, reads, row, number, sums, missing);
  }
}

}  // namespace kbench::inputs
