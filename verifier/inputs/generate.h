// The interpreter of a Program: single source for CPU and CUDA, the same bits on both (see maths.h).
//
// A device fills a tensor in two steps, the second only where program.rows > 0, after all elements of the first are
// stored:
//   for every index in [0, program.elements):  generate_store(program, seed, index, reads, out);
//   for every row in [0, program.rows):        finish_row(program, seed, row, reads, out);
// Calls of one step are independent of each other. `reads` holds the device addresses of Compiled::reads, in order,
// already filled. A row may be as long as the tensor (offsets), then the second step is one call and serial.
#pragma once

#include <cstdint>

#include "verifier/inputs/codec.h"
#include "verifier/inputs/inputs.h"
#include "verifier/inputs/maths.h"
#include "verifier/inputs/philox.h"

namespace kbench::inputs {

// Stack machine over doubles: operands are pushed left to right, results replace them. a, b, value: fields of the
// instruction.
enum class Op : std::uint8_t {
  push,         // value
  index,        // the element's index along axis a
  linear,       // its flat index
  row,          // its flat index without the last axis
  current,      // after a finish: the stored element
  let,          // pop into register a
  get,          // register a
  jump,         // to instruction b
  jump_if_not,  // pop; to instruction b if it is 0
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  power,
  negate,
  min,
  max,
  abs,
  sign,
  sqrt,
  exp,
  log,
  log1p,
  round,
  floor,
  ceil,
  sin,
  cos,
  tanh,
  equal,
  less,
  less_equal,
  logical_not,
  logical_and,
  logical_or,
  group,      // starts a draw's group: the draws that follow with a = 1 depend on it instead of on the element
  group_mix,  // pop; the group differs where it does
  uniform,    // b: site, a: grouped. In (0, 1)
  normal,     // standard normal
  integer,    // pop beyond, pop least: least <= n < beyond
  permute,    // pop n, pop position: place of `position` in a random permutation of 0..n-1; -1 outside
  strata,     // pop n, pop m, pop position: the position-th of m ascending distinct numbers of 0..n-1; -1 outside
  read,       // pop flat index: element of reads[a], dtype b, `value` elements in all; NaN outside
  byte_of,    // pop number, pop x: that byte of x stored as dtype a
};

KB_HD PhiloxBlock draw(const Program& program, std::uint64_t seed, std::uint32_t site, std::uint64_t which) {
  return philox({{static_cast<std::uint32_t>(which), static_cast<std::uint32_t>(which >> 32), program.tensor, site}},
                seed);
}
KB_HD std::uint64_t first64(PhiloxBlock block) {
  return block.word[0] | static_cast<std::uint64_t>(block.word[1]) << 32;
}
KB_HD double unit_interval(std::uint64_t bits) {  // 2^52 values, none of them 0 or 1
  return mul(add(static_cast<double>(static_cast<std::int64_t>(bits >> 12)), 0.5), 2.220446049250313e-16);
}

// A bijection of [0, n) by an unbalanced Feistel network on the next power of two, walked until it falls inside: under
// two steps on average.
KB_HD std::int64_t permuted(std::int64_t position, std::int64_t n, std::uint64_t key) {
  int bits = 2;
  while ((std::int64_t{1} << bits) < n) ++bits;
  const int low_bits = bits / 2, high_bits = bits - low_bits;
  std::uint64_t x = static_cast<std::uint64_t>(position);
  do {
    int left_bits = high_bits, right_bits = low_bits;
    for (std::uint64_t round = 1; round <= 6; ++round) {
      const std::uint64_t right = x & ((std::uint64_t{1} << right_bits) - 1);
      const std::uint64_t left =
          (x >> right_bits) ^ (mix64(key + (right << 8 | round) * 0x9E3779B97F4A7C15ull) >> (64 - left_bits));
      x = right << left_bits | left;
      const int swapped = left_bits;
      left_bits = right_bits;
      right_bits = swapped;
    }
  } while (x >= static_cast<std::uint64_t>(n));
  return static_cast<std::int64_t>(x);
}

// Ascending and distinct, any one alone: one number from each of m strata of (nearly) equal width.
KB_HD std::int64_t in_stratum(std::int64_t position, std::int64_t m, std::int64_t n, std::uint64_t random) {
  const std::int64_t quotient = n / m, remainder = n % m;
  const std::int64_t begin = position * quotient + (position < remainder ? position : remainder);
  const std::int64_t width = quotient + (position < remainder ? 1 : 0);
  return begin + static_cast<std::int64_t>(mul(unit_interval(random), static_cast<double>(width)));
}

KB_HD double floor_divided(double a, double b) {
  if (magnitude(a) < 9007199254740992.0 && magnitude(b) < 9007199254740992.0 && a == round_even(a) &&
      b == round_even(b) && b != 0) {
    const std::int64_t x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b), quotient = x / y;
    return static_cast<double>(quotient - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0));
  }
  return floor_of(div(a, b));
}

KB_HD double unary(Op op, double x) {
  switch (op) {
    case Op::negate:
      return -x;
    case Op::abs:
      return magnitude(x);
    case Op::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Op::sqrt:
      return root(x);
    case Op::exp:
      return exponential(x);
    case Op::log:
      return logarithm(x);
    case Op::log1p:
      return log_plus_one(x);
    case Op::round:
      return round_even(x);
    case Op::floor:
      return floor_of(x);
    case Op::ceil:
      return -floor_of(-x);
    case Op::sin:
      return sine(x);
    case Op::cos:
      return cosine(x);
    case Op::tanh:
      return hyperbolic_tangent(x);
    default:
      return x == 0 ? 1 : 0;  // logical_not
  }
}

KB_HD double binary(Op op, double x, double y) {
  switch (op) {
    case Op::add:
      return add(x, y);
    case Op::sub:
      return sub(x, y);
    case Op::mul:
      return mul(x, y);
    case Op::div:
      return div(x, y);
    case Op::floor_div:
      return floor_divided(x, y);
    case Op::mod:
      return sub(x, mul(y, floor_divided(x, y)));
    case Op::power:
      return power(x, y);
    case Op::min:
      return y < x ? y : x;
    case Op::max:
      return y > x ? y : x;
    case Op::equal:
      return x == y ? 1 : 0;
    case Op::less:
      return x < y ? 1 : 0;
    case Op::less_equal:
      return x <= y ? 1 : 0;
    case Op::logical_and:
      return x != 0 && y != 0 ? 1 : 0;
    default:
      return x != 0 || y != 0 ? 1 : 0;  // logical_or
  }
}

// Runs the instructions [begin, end) for one element; `current` is what Op::current gives. The compiler guarantees
// depth and jumps.
KB_HD double run(const Program& program, int begin, int end, std::uint64_t seed, std::int64_t element,
                 const void* const* reads, double current) {
  double stack[kStackMax], registers[kRegistersMax];
  double top = 0;  // the top of the stack lies here, the rest in stack[0, depth)
  int depth = 0;
  std::uint64_t group = 0;
  for (int at = begin; at < end; ++at) {
    const Instruction& instruction = program.code[at];
    const Op op = static_cast<Op>(instruction.op);
    const std::uint64_t which = instruction.a != 0 ? group : static_cast<std::uint64_t>(element);
    switch (op) {
      case Op::push:
        stack[depth++] = top;
        top = instruction.value;
        break;
      case Op::index: {
        std::int64_t rest = element;
        for (int axis = program.rank - 1; axis > instruction.a; --axis) rest /= program.shape[axis];
        stack[depth++] = top;
        top = static_cast<double>(rest % program.shape[instruction.a]);
        break;
      }
      case Op::linear:
        stack[depth++] = top;
        top = static_cast<double>(element);
        break;
      case Op::row:
        stack[depth++] = top;
        top = static_cast<double>(element / program.shape[program.rank - 1]);
        break;
      case Op::current:
        stack[depth++] = top;
        top = current;
        break;
      case Op::let:
        registers[instruction.a] = top;
        top = stack[--depth];
        break;
      case Op::get:
        stack[depth++] = top;
        top = registers[instruction.a];
        break;
      case Op::jump:
        at = instruction.b - 1;
        break;
      case Op::jump_if_not:
        if (top == 0) at = instruction.b - 1;
        top = stack[--depth];
        break;
      case Op::group:
        group = 0x243F6A8885A308D3ull;
        break;
      case Op::group_mix:
        group = mix64(group ^ bits_of(add(top, 0))) + 0x9E3779B97F4A7C15ull;
        top = stack[--depth];
        break;
      case Op::uniform:
        stack[depth++] = top;
        top = unit_interval(first64(draw(program, seed, instruction.b, which)));
        break;
      case Op::normal:
        stack[depth++] = top;
        top = normal_quantile(unit_interval(first64(draw(program, seed, instruction.b, which))));
        break;
      case Op::integer: {
        const double least = stack[--depth], count = sub(top, least);
        const double n = floor_of(mul(unit_interval(first64(draw(program, seed, instruction.b, which))), count));
        top = add(least, n < count ? n : sub(count, 1));
        break;
      }
      case Op::permute: {
        const double position = stack[--depth];
        top = position >= 0 && position < top && top < 4503599627370496.0
                  ? static_cast<double>(
                        permuted(static_cast<std::int64_t>(position), static_cast<std::int64_t>(top),
                                 first64(draw(program, seed, instruction.b, instruction.a != 0 ? group : 0))))
                  : -1;
        break;
      }
      case Op::strata: {
        const double m = stack[--depth], position = stack[--depth];
        const std::uint64_t random = mix64((instruction.a != 0 ? group : 0) ^ bits_of(position));
        top = position >= 0 && position < m && position < top && top < 4503599627370496.0
                  ? static_cast<double>(
                        in_stratum(static_cast<std::int64_t>(position), static_cast<std::int64_t>(m < top ? m : top),
                                   static_cast<std::int64_t>(top), first64(draw(program, seed, instruction.b, random))))
                  : -1;
        break;
      }
      case Op::read:
        top = top >= 0 && top < instruction.value
                  ? load(static_cast<DType>(instruction.b), reads[instruction.a], static_cast<std::int64_t>(top))
                  : not_a_number();
        break;
      case Op::byte_of: {
        const double number = top;
        top = static_cast<double>(
            encode(static_cast<DType>(instruction.a), stack[--depth]) >> (8 * static_cast<int>(number)) & 255);
        break;
      }
      case Op::negate:
      case Op::abs:
      case Op::sign:
      case Op::sqrt:
      case Op::exp:
      case Op::log:
      case Op::log1p:
      case Op::round:
      case Op::floor:
      case Op::ceil:
      case Op::sin:
      case Op::cos:
      case Op::tanh:
      case Op::logical_not:
        top = unary(op, top);
        break;
      default:
        top = binary(op, stack[--depth], top);
        break;
    }
  }
  return top;
}

KB_HD double element_value(const Program& program, std::uint64_t seed, std::int64_t index, const void* const* reads) {
  return run(program, 0, program.length, seed, index, reads, 0);
}

// Writes element `index` of the tensor at `out`.
KB_HD void generate_store(const Program& program, std::uint64_t seed, std::int64_t index, const void* const* reads,
                          void* out) {
  const std::uint64_t bits = program.finish == Finish::raw_bits
                                 ? first64(draw(program, seed, 0, static_cast<std::uint64_t>(index)))
                                 : encode(program.dtype, element_value(program, seed, index, reads));
  store_bits(program.dtype, bits, out, index);
}

// --- rows ---

struct RowView {  // of the tensor being finished
  DType dtype;
  void* data;
  std::int64_t begin, length;
  KB_HD double get(std::int64_t i) const { return load(dtype, data, begin + i); }
  KB_HD void set(std::int64_t i, double value) const { store_bits(dtype, encode(dtype, value), data, begin + i); }
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
  for (std::int64_t i = 0; i < count; ++i) weights = add(weights, element_value(program, seed, row.begin + i, reads));
  for (std::int64_t i = 0; i < count; ++i) {
    reached = add(reached, element_value(program, seed, row.begin + i, reads));
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

KB_HD void finish_row(const Program& program, std::uint64_t seed, std::int64_t row_number, const void* const* reads,
                      void* out) {
  const RowView row{program.dtype, out, row_number * program.row_length, program.row_length};
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
    default:
      break;
  }
  if (program.total_length == program.length) return;
  for (std::int64_t i = 0; i < row.length; ++i)
    row.set(i, run(program, program.length, program.total_length, seed, row.begin + i, reads, row.get(i)));
}

}  // namespace kbench::inputs
