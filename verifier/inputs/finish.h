// The second step of a fill: what is done to whole rows, in place. Single source for CPU and CUDA; included by
// generate.h.
#pragma once

#include <cstdint>

#include "verifier/inputs/interpret.h"

namespace kbench::inputs {

struct RowView {  // of the tensor being finished
  DType dtype;
  void* data;
  std::int64_t begin, length, stride;
  KB_HD std::int64_t at(std::int64_t i) const { return begin + i * stride; }
  KB_HD double get(std::int64_t i) const { return load(dtype, data, at(i)); }
  KB_HD void set(std::int64_t i, double value) const { store_bits(dtype, encode(dtype, value), data, at(i)); }
};

KB_HD void softmax_row(const RowView& row) {
  double largest = -infinity(), sum = 0;
  for (std::int64_t i = 0; i < row.length; ++i) largest = row.get(i) > largest ? row.get(i) : largest;
  for (std::int64_t i = 0; i < row.length; ++i) sum = add(sum, exponential(sub(row.get(i), largest)));
  for (std::int64_t i = 0; i < row.length; ++i) row.set(i, div(exponential(sub(row.get(i), largest)), sum));
}

KB_HD void l2norm_row(const RowView& row) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.length; ++i) sum = add(sum, mul(row.get(i), row.get(i)));
  const double norm = sum > 0 ? root(sum) : 1;
  for (std::int64_t i = 0; i < row.length; ++i) row.set(i, div(row.get(i), norm));
}

// Heap sort: in place, no worse than n log n. Descending when `down`.
KB_HD void sort_row(const RowView& row, bool down) {
  for (std::int64_t start = row.length / 2, end = row.length; end > 1;) {
    double moving;
    if (start > 0) {
      moving = row.get(--start);
    } else {
      moving = row.get(--end);
      row.set(end, row.get(0));
    }
    std::int64_t hole = start;
    for (std::int64_t child = 2 * hole + 1; child < end; child = 2 * hole + 1) {
      if (child + 1 < end && (down ? row.get(child + 1) < row.get(child) : row.get(child + 1) > row.get(child)))
        ++child;
      if (!(down ? row.get(child) < moving : row.get(child) > moving)) break;
      row.set(hole, row.get(child));
      hole = child;
    }
    row.set(hole, moving);
  }
}

KB_HD void cumsum_row(const RowView& row, std::int64_t chunk) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.length; ++i) {
    sum = i % chunk == 0 ? row.get(i) : add(sum, row.get(i));
    row.set(i, sum);
  }
}

KB_HD void prefix_row(const RowView& row) {  // exclusive
  double sum = 0;
  for (std::int64_t i = 0; i < row.length; ++i) {
    const double value = row.get(i);
    row.set(i, sum);
    sum = add(sum, value);
  }
}

// `count` whole numbers in proportion to the weights (the program's values), each in [least, largest], with the exact
// total. What the bounds cut off goes to the following ones, the remainder to whoever still has room, from the front.
// As offsets: their running sums.
KB_HD void sizes_row(const Program& program, std::uint64_t seed, const void* const* reads, const RowView& row) {
  const std::int64_t count = static_cast<std::int64_t>(program.finish_arguments[0]);
  const double least = program.finish_arguments[2], largest = program.finish_arguments[3];
  const double shared = sub(program.finish_arguments[1], mul(least, static_cast<double>(count)));
  double weights = 0, reached = 0, given = 0, carry = 0;
  for (std::int64_t i = 0; i < count; ++i) weights = add(weights, element_value(program, seed, row.at(i), reads));
  for (std::int64_t i = 0; i < count; ++i) {
    reached = add(reached, element_value(program, seed, row.at(i), reads));
    const double until = i + 1 == count ? shared : floor_of(mul(shared, div(reached, weights > 0 ? weights : 1)));
    double size = add(add(least, sub(until, given)), carry);
    given = until;
    carry = size > largest ? sub(size, largest) : 0;
    row.set(i, sub(size, carry));
  }
  for (std::int64_t i = 0; i < count && carry > 0; ++i) {
    const double room = sub(largest, row.get(i)), taken = room < carry ? room : carry;
    row.set(i, add(row.get(i), taken));
    carry = sub(carry, taken);
  }
  if (program.finish == Finish::offsets) prefix_row(row);
}

// A block table, the whole tensor one row: pages of a random order of the pool, no page twice, for the first
// ceil(length/page) entries of each sequence; -1 after them. Once the pool is spent: -1.
KB_HD void pages_row(const Program& program, std::uint64_t seed, const void* const* reads, const RowView& row) {
  const double page = program.finish_arguments[0];
  const std::int64_t pool = static_cast<std::int64_t>(program.finish_arguments[1]),
                     columns = program.shape[program.rank - 1];
  const DType dtype = static_cast<DType>(static_cast<int>(program.finish_arguments[2]));
  const bool offsets = program.finish_arguments[3] != 0;
  const std::uint64_t key = first64(draw(program, seed, 0, 0));
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < row.length; ++i) {
    const std::int64_t sequence = i / columns;
    const double length = offsets ? sub(load(dtype, reads[0], sequence + 1), load(dtype, reads[0], sequence))
                                  : load(dtype, reads[0], sequence);
    const bool used = mul(static_cast<double>(i % columns), page) < length && next < pool;
    row.set(i, used ? static_cast<double>(permuted(next, pool, key)) : -1);
    if (used) ++next;
  }
}

// The `length` of n candidates with the largest scores (the program's values, the candidate being Op::current), best
// first. Of equals the lower comes first.
KB_HD void top_row(const Program& program, std::uint64_t seed, const void* const* reads, const RowView& row) {
  const std::int64_t candidates = static_cast<std::int64_t>(program.finish_arguments[0]);
  double bound = infinity();
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < row.length; ++i) {
    double best = -infinity();
    std::int64_t chosen = -1;
    for (std::int64_t n = 0; n < candidates; ++n) {
      const double score = run(program, 0, program.length, seed, row.at(0), reads, static_cast<double>(n));
      if (score > bound || (score == bound && n <= last) || (chosen >= 0 && !(score > best))) continue;
      best = score;
      chosen = n;
    }
    row.set(i, static_cast<double>(chosen));
    bound = best;
    last = chosen;
  }
}

KB_HD void finish_row(const Program& program, std::uint64_t seed, std::int64_t row_number, const void* const* reads,
                      void* out) {
  const std::int64_t stride = program.row_stride, block = row_number / stride;
  const RowView row{program.dtype, out, block * stride * program.row_length + row_number % stride, program.row_length,
                    stride};
  switch (program.finish) {
    case Finish::softmax:
      softmax_row(row);
      break;
    case Finish::l2norm:
      l2norm_row(row);
      break;
    case Finish::sort_up:
      sort_row(row, false);
      break;
    case Finish::sort_down:
      sort_row(row, true);
      break;
    case Finish::cumsum:
      cumsum_row(row, static_cast<std::int64_t>(program.finish_arguments[0]));
      break;
    case Finish::prefix:
      prefix_row(row);
      break;
    case Finish::sizes:
    case Finish::offsets:
      sizes_row(program, seed, reads, row);
      break;
    case Finish::pages:
      pages_row(program, seed, reads, row);
      break;
    case Finish::top:
      top_row(program, seed, reads, row);
      break;
    default:
      break;
  }
  if (program.total_length == program.length) return;
  for (std::int64_t i = 0; i < row.length; ++i)
    row.set(i, run(program, program.length, program.total_length, seed, row.at(i), reads, row.get(i)));
}

}  // namespace kbench::inputs
