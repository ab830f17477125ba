// Wrong outputs and weakened inputs that a task's rules must see through, made on the host from the right ones.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "verifier/problem/problem.h"

namespace kbench::generator {

using Bytes = std::vector<std::byte>;

// A tensor's content with its extents at hand.
struct Content {
  DType dtype;
  std::vector<std::int64_t> shape;
  Bytes bytes;

  std::int64_t count() const;    // stored elements
  std::int64_t columns() const;  // the last extent
  double get(std::int64_t index) const;
  void set(std::int64_t index, double value);  // rounds and saturates as inputs/codec.h does
};

bool is_float(DType dtype);    // a format with a mantissa
bool is_operand(DType dtype);  // holds numbers that a sum runs over, not indices: floats, codes, 8-bit integers

Content zeros(const Content& right);
Content constant(const Content& right);                 // the mean everywhere
std::optional<Content> rank_one(const Content& right);  // the best product of a column and a row; none for a vector
std::optional<Content> copied(const Content& right, const Content& input);  // none unless there are as many elements

// `blank` is what a place that is not written holds: zeros, or an in-out tensor's content before.
// None where no place makes a difference. `rows_least`: a tile covers more rows than the rule leaves out.
std::optional<Content> without_tile(const Content& right, const Content& blank, std::int64_t rows_least);
std::optional<Content> without_last_row(const Content& right, const Content& blank);     // nor where there is one row
std::optional<Content> without_last_column(const Content& right, const Content& blank);  // of one row: its last 16

// One element changed. Numbers: by `amount`; codes and integers: by a high bit.
Content with_wrong_bits(const Content& right, std::int64_t index);
Content with_offset(const Content& right, std::int64_t index, double amount);
std::optional<Content> with_nan(const Content& right, std::int64_t index);  // none where the format has no NaN

// Inputs. Significant bits of the next lower format: f64 as f32, f32 as tf32, bf16 and f16 as fp8, fp8 as fp4; the
// range stays. None for other formats.
std::optional<Content> lowered(const Content& input);
// Zeros in [begin, end) along an axis: a sum over it ends early.
Content without_slice(const Content& input, std::size_t axis, std::int64_t begin, std::int64_t end);
// `into` with what `from` has there: the outputs that a slice of the same axis stands for.
void restore_slice(Content& into, const Content& from, std::size_t axis, std::int64_t begin, std::int64_t end);

}  // namespace kbench::generator
