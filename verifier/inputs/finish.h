// The second step of a fill: what is done to whole rows, in place, one thread a row. Single source for CPU and CUDA;
// included by generate.h. sizes.h has what many threads share a row for.
#pragma once

#include <cstdint>

#include "verifier/inputs/interpret.h"

namespace kbench::inputs {

// Site of the draws of a finish: beyond those of a program.
inline constexpr std::uint32_t kFinishSite = 0xFFFFF;

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

// The `length` of n candidates with the largest scores (the program's values, the candidate being Op::current), best
// first, or in random order where finish_arguments[1] is not 0. Of equals the lower comes first, and a score of NaN is
// the least. As many as kTopKept are found in one look at all candidates.
inline constexpr int kTopKept = 16;

KB_HD void top_row(const Program& program, std::uint64_t seed, const void* const* reads, const RowView& row) {
  const std::int64_t candidates = static_cast<std::int64_t>(program.finish_arguments[0]);
  const bool shuffled = program.finish_arguments[1] != 0;
  const std::uint64_t key =
      shuffled ? first64(draw(program, seed, kFinishSite, static_cast<std::uint64_t>(row.begin))) : 0;
  double bound = infinity(), scores[kTopKept];
  std::int64_t last = -1, chosen[kTopKept];
  for (std::int64_t done = 0; done < row.length;) {
    const int wanted = static_cast<int>(row.length - done < kTopKept ? row.length - done : kTopKept);
    int found = 0;
    for (std::int64_t n = 0; n < candidates; ++n) {
      const double given = run(program, 0, program.length, seed, row.at(0), reads, static_cast<double>(n));
      const double score = is_nan(given) ? -infinity() : given;      // NaN is not above, below or equal to any
      if (score > bound || (score == bound && n <= last)) continue;  // taken before
      if (found == wanted && !(score > scores[found - 1])) continue;
      int at = found < wanted ? found++ : found - 1;
      for (; at > 0 && score > scores[at - 1]; --at) {
        scores[at] = scores[at - 1];
        chosen[at] = chosen[at - 1];
      }
      scores[at] = score;
      chosen[at] = n;
    }
    for (int i = 0; i < wanted; ++i) {
      const std::int64_t place = shuffled ? permuted(done + i, row.length, key) : done + i;
      row.set(place, i < found ? static_cast<double>(chosen[i]) : -1);
    }
    if (found == 0) break;
    bound = scores[found - 1];
    last = chosen[found - 1];
    done += wanted;
  }
}

// A matrix of rows of `columns`: exp of each, then rows and columns divided by their sums, in turn.
KB_HD void sinkhorn_row(const RowView& matrix, std::int64_t columns, std::int64_t times) {
  const std::int64_t rows = matrix.length / columns;
  for (std::int64_t i = 0; i < matrix.length; ++i) matrix.set(i, exponential(matrix.get(i)));
  const auto divide = [&](std::int64_t first, std::int64_t count, std::int64_t step) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum = add(sum, matrix.get(first + i * step));
    for (std::int64_t i = 0; i < count; ++i)
      matrix.set(first + i * step, div(matrix.get(first + i * step), sum > 0 ? sum : 1));
  };
  for (std::int64_t time = 0; time < times; ++time) {
    for (std::int64_t r = 0; r < rows; ++r) divide(r * columns, columns, 1);
    for (std::int64_t c = 0; c < columns; ++c) divide(c, rows, columns);
  }
}

KB_HD RowView row_of(const Program& program, std::int64_t number, void* out) {
  const std::int64_t stride = program.row_stride, block = number / stride;
  return {program.dtype, out, block * stride * program.row_length + number % stride, program.row_length, stride};
}

KB_HD void finish_row(const Program& program, std::uint64_t seed, std::int64_t number, const void* const* reads,
                      void* out) {
  const RowView row = row_of(program, number, out);
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
    case Finish::top:
      top_row(program, seed, reads, row);
      break;
    case Finish::sinkhorn:
      sinkhorn_row(row, program.shape[program.rank - 1], static_cast<std::int64_t>(program.finish_arguments[0]));
      break;
    default:
      break;
  }
  if (program.total_length == program.length) return;
  for (std::int64_t i = 0; i < row.length; ++i)
    row.set(i, run(program, program.length, program.total_length, seed, row.at(i), reads, row.get(i)));
}

}  // namespace kbench::inputs
