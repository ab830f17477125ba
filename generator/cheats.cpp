#include "generator/cheats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "verifier/inputs/codec.h"

namespace kbench::generator {
namespace {

constexpr std::int64_t kTile = 16;

std::size_t element_bytes(const Content& content) { return bytes_of(content.dtype); }

void copy_element(Content& into, const Content& from, std::int64_t index) {
  const std::size_t size = element_bytes(from), at = static_cast<std::size_t>(index) * size;
  std::memcpy(into.bytes.data() + at, from.bytes.data() + at, size);
}

std::optional<Content> if_differs(Content made, const Content& right) {
  if (made.bytes == right.bytes) return std::nullopt;
  return made;
}

std::int64_t inner_of(const Content& content, std::size_t axis) {
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < content.shape.size(); ++i) inner *= content.shape[i];
  return inner;
}

// use(index) for every element whose index along the axis is in [begin, end).
template <class Use>
void for_slice(const Content& content, std::size_t axis, std::int64_t begin, std::int64_t end, Use use) {
  const std::int64_t inner = inner_of(content, axis), extent = content.shape[axis];
  const std::int64_t outer = content.count() / std::max<std::int64_t>(1, inner * extent);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = (o * extent + begin) * inner; i < (o * extent + end) * inner; ++i) use(i);
}

int significant_bits_below(DType dtype) {  // the explicit ones of the next lower format; 0: none
  switch (dtype) {
    case DType::f64:
      return 23;
    case DType::f32:
      return 10;
    case DType::bf16:
    case DType::f16:
      return 3;
    case DType::e4m3:
    case DType::e5m2:
      return 1;
    default:
      return 0;
  }
}

double rounded_to(double value, int explicit_bits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::ldexp(1.0, std::ilogb(value) - explicit_bits);
  return std::nearbyint(value / unit) * unit;
}

}  // namespace

std::int64_t Content::count() const {
  std::int64_t all = 1;
  for (const std::int64_t extent : shape) all *= extent;
  return all;
}
std::int64_t Content::columns() const { return shape.empty() ? 1 : shape.back(); }
double Content::get(std::int64_t index) const { return inputs::load(dtype, bytes.data(), index); }
void Content::set(std::int64_t index, double value) {
  inputs::store_bits(dtype, inputs::encode(dtype, value), bytes.data(), index);
}

bool is_float(DType dtype) { return dtype <= DType::e5m2; }
bool is_operand(DType dtype) {
  return is_float(dtype) || dtype == DType::e2m1x2 || dtype == DType::e8m0 || dtype == DType::i8 || dtype == DType::u8;
}

Content zeros(const Content& right) { return {right.dtype, right.shape, Bytes(right.bytes.size())}; }

Content constant(const Content& right) {
  double sum = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < right.count(); ++i)
    if (const double x = right.get(i); std::isfinite(x)) sum += x, ++finite;
  Content made = right;
  for (std::int64_t i = 0; i < right.count(); ++i) made.set(i, finite > 0 ? sum / static_cast<double>(finite) : 0);
  return made;
}

std::optional<Content> rank_one(const Content& right) {
  const std::int64_t columns = right.columns(), rows = columns > 0 ? right.count() / columns : 0;
  if (rows < 2 || columns < 2) return std::nullopt;
  std::vector<double> u(static_cast<std::size_t>(rows)), v(static_cast<std::size_t>(columns), 1);
  const auto at = [&](std::int64_t r, std::int64_t c) {
    const double x = right.get(r * columns + c);
    return std::isfinite(x) ? x : 0;
  };
  for (int step = 0; step < 3; ++step) {  // power iteration
    std::vector<double> next(v.size());
    double squares = 0;
    for (const double x : v) squares += x * x;
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < columns; ++c) sum += at(r, c) * v[static_cast<std::size_t>(c)];
      u[static_cast<std::size_t>(r)] = squares > 0 ? sum / squares : 0;
    }
    squares = 0;
    for (const double x : u) squares += x * x;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        next[static_cast<std::size_t>(c)] += at(r, c) * u[static_cast<std::size_t>(r)];
    for (double& x : next) x = squares > 0 ? x / squares : 0;
    v = next;
  }
  Content made = right;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      made.set(r * columns + c, u[static_cast<std::size_t>(r)] * v[static_cast<std::size_t>(c)]);
  return if_differs(made, right);
}

std::optional<Content> copied(const Content& right, const Content& input) {
  if (right.count() != input.count()) return std::nullopt;
  Content made = right;
  for (std::int64_t i = 0; i < right.count(); ++i) made.set(i, input.get(i));
  return if_differs(made, right);
}

std::optional<Content> without_tile(const Content& right, const Content& blank, std::int64_t rows_least) {
  const std::int64_t columns = right.columns(), rows = columns > 0 ? right.count() / columns : 0;
  const std::int64_t height = std::min(rows, std::max(kTile, rows_least)),
                     width = std::min(columns, rows == 1 ? kTile * kTile : kTile);
  // Tiles of a coarse grid, from the middle on.
  const std::int64_t down = height > 0 ? rows / height : 0, across = width > 0 ? columns / width : 0;
  for (std::int64_t tile = 0; tile < down * across; ++tile) {
    const std::int64_t number = (tile + down * across / 2) % (down * across);
    Content made = right;
    for (std::int64_t r = number / across * height; r < (number / across + 1) * height; ++r)
      for (std::int64_t c = number % across * width; c < (number % across + 1) * width; ++c)
        copy_element(made, blank, r * columns + c);
    if (made.bytes != right.bytes) return made;
    if (tile == 100) break;
  }
  return std::nullopt;
}

std::optional<Content> without_last_row(const Content& right, const Content& blank) {
  if (right.count() == right.columns()) return std::nullopt;
  Content made = right;
  for (std::int64_t i = std::max<std::int64_t>(0, right.count() - right.columns()); i < right.count(); ++i)
    copy_element(made, blank, i);
  return if_differs(made, right);
}

std::optional<Content> without_last_column(const Content& right, const Content& blank) {
  Content made = right;
  const std::int64_t columns = right.columns();
  const std::int64_t width = right.count() == columns ? std::min(kTile, columns) : 1;
  for (std::int64_t i = columns; i <= right.count(); i += columns)
    for (std::int64_t k = 1; k <= width; ++k) copy_element(made, blank, i - k);
  return if_differs(made, right);
}

Content with_wrong_bits(const Content& right, std::int64_t index) {
  Content made = right;
  const std::size_t size = element_bytes(right);
  made.bytes[static_cast<std::size_t>(index + 1) * size - 1] ^= std::byte{0x40};  // little endian: of the highest byte
  return made;
}

Content with_offset(const Content& right, std::int64_t index, double amount) {
  Content made = right;
  made.set(index, right.get(index) + amount);
  return made;
}

std::optional<Content> with_nan(const Content& right, std::int64_t index) {
  if (!is_float(right.dtype) || !std::isfinite(right.get(index))) return std::nullopt;
  Content made = right;
  made.set(index, std::numeric_limits<double>::quiet_NaN());
  if (!std::isnan(made.get(index))) return std::nullopt;
  return made;
}

std::optional<Content> lowered(const Content& input) {
  const int bits = significant_bits_below(input.dtype);
  if (bits == 0) return std::nullopt;
  Content made = input;
  for (std::int64_t i = 0; i < input.count(); ++i) made.set(i, rounded_to(input.get(i), bits));
  return made;
}

Content without_slice(const Content& input, std::size_t axis, std::int64_t begin, std::int64_t end) {
  Content made = input;
  const std::size_t size = element_bytes(input);
  for_slice(input, axis, begin, end,
            [&](std::int64_t i) { std::memset(made.bytes.data() + static_cast<std::size_t>(i) * size, 0, size); });
  return made;
}

void restore_slice(Content& into, const Content& from, std::size_t axis, std::int64_t begin, std::int64_t end) {
  for_slice(from, axis, begin, end, [&](std::int64_t i) { copy_element(into, from, i); });
}

}  // namespace kbench::generator
