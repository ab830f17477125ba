// The interpreter of a Program's instructions, for one element. Single source for CPU and CUDA, the same bits on both
// (see maths.h).
#pragma once

#include <cstdint>

#include "verifier/inputs/codec.h"
#include "verifier/inputs/inputs.h"
#include "verifier/inputs/maths.h"
#include "verifier/inputs/philox.h"

namespace kbench::inputs {

// Stack machine over doubles: operands are pushed left to right, the result replaces them. a, b, value: fields of the
// instruction. The order of the groups below is part of the meaning: see run.
enum class Op : std::uint8_t {
  // Values, pushed.
  push,     // value
  index,    // the element's index along axis a
  linear,   // its flat index
  row,      // its flat index without the last axis
  current,  // after a finish: the stored element; of top: the candidate
  get,      // register a
  uniform,  // in (0, 1). Draws: b is the site, a is of kGrouped and kShared
  normal,   // standard normal
  // Functions of the top.
  negate,
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
  logical_not,
  // Functions of two.
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  power,
  min,
  max,
  equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  // The rest.
  let,          // pop into register a
  jump,         // to instruction b
  jump_if_not,  // pop; to instruction b if it is 0
  group,        // starts a draw's group: the kGrouped draws that follow depend on it instead of on the element
  group_mix,    // pop; the group differs where it does
  integer,      // pop beyond, pop least: a draw, least <= n < beyond
  permute,      // pop n, pop position: place of `position` in a random permutation of 0..n-1; -1 outside
  unpermute,    // pop n, pop place: the position that `permute` puts there
  strata,       // pop n, pop m, pop position: the position-th of m ascending distinct numbers of 0..n-1; -1 outside
  read,         // pop flat index: element of reads[a], dtype b, `value` elements in all; NaN outside
  search,  // pop x, pop line: the last place in that line of reads[a], ascending, dtype b, `lines` of them with `value`
           // elements each, that is not above x; -1: none, or no such line
  byte_of,  // pop number, pop x: that byte of x stored as dtype a
};
inline constexpr Op kLastValue = Op::normal, kLastUnary = Op::logical_not, kLastBinary = Op::logical_or;

// Of an instruction's a, for draws.
inline constexpr std::uint8_t kGrouped = 1;  // depends on the group, not on the element
inline constexpr std::uint8_t kShared = 2;   // not on the tensor either

KB_HD PhiloxBlock draw(const Program& program, std::uint64_t seed, std::uint32_t site, std::uint64_t which,
                       std::uint8_t kind = 0) {
  const std::uint32_t tensor = (kind & kShared) != 0 ? ~0u : program.tensor;
  return philox({{static_cast<std::uint32_t>(which), static_cast<std::uint32_t>(which >> 32), tensor, site}}, seed);
}
KB_HD PhiloxBlock draw(const Program& program, std::uint64_t seed, const Instruction& instruction,
                       std::uint64_t which) {
  return draw(program, seed, instruction.b, which, instruction.a);
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

// The position that `permuted` takes to `place`: the same rounds backwards.
KB_HD std::int64_t unpermuted(std::int64_t place, std::int64_t n, std::uint64_t key) {
  int bits = 2;
  while ((std::int64_t{1} << bits) < n) ++bits;
  const int low_bits = bits / 2, high_bits = bits - low_bits;
  std::uint64_t x = static_cast<std::uint64_t>(place);
  do {
    for (std::uint64_t round = 6; round >= 1; --round) {
      const bool odd = (round & 1) != 0;
      const int left_bits = odd ? high_bits : low_bits, right_bits = odd ? low_bits : high_bits;
      const std::uint64_t left = x & ((std::uint64_t{1} << left_bits) - 1), right = x >> left_bits;
      x = (left ^ (mix64(key + (right << 8 | round) * 0x9E3779B97F4A7C15ull) >> (64 - left_bits))) << right_bits |
          right;
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

KB_HD double pushed(const Program& program, const Instruction& instruction, std::uint64_t seed, std::int64_t element,
                    std::uint64_t which, double current, const double* registers) {
  switch (static_cast<Op>(instruction.op)) {
    case Op::push:
      return instruction.value;
    case Op::index: {
      std::int64_t rest = element;
      for (int axis = program.rank - 1; axis > instruction.a; --axis) rest /= program.shape[axis];
      return static_cast<double>(rest % program.shape[instruction.a]);
    }
    case Op::linear:
      return static_cast<double>(element);
    case Op::row:
      return static_cast<double>(element / program.shape[program.rank - 1]);
    case Op::current:
      return current;
    case Op::get:
      return registers[instruction.a];
    case Op::uniform:
      return unit_interval(first64(draw(program, seed, instruction, which)));
    default:
      return normal_quantile(unit_interval(first64(draw(program, seed, instruction, which))));
  }
}

// Positions are whole and counts below 2^52, else -1.
KB_HD double placed(const Program& program, const Instruction& instruction, std::uint64_t seed, double position,
                    double n, std::uint64_t group) {
  if (!(position >= 0 && position < n && n < 4503599627370496.0)) return -1;
  const std::uint64_t key = first64(draw(program, seed, instruction, group));
  const std::int64_t from = static_cast<std::int64_t>(position), count = static_cast<std::int64_t>(n);
  return static_cast<double>(static_cast<Op>(instruction.op) == Op::permute ? permuted(from, count, key)
                                                                            : unpermuted(from, count, key));
}
KB_HD double ascending(const Program& program, const Instruction& instruction, std::uint64_t seed, double position,
                       double m, double n, std::uint64_t group) {
  if (m > n) m = n;
  if (!(position >= 0 && position < m && n < 4503599627370496.0)) return -1;
  const std::uint64_t random = first64(draw(program, seed, instruction, mix64(group ^ bits_of(position))));
  return static_cast<double>(in_stratum(static_cast<std::int64_t>(position), static_cast<std::int64_t>(m),
                                        static_cast<std::int64_t>(n), random));
}
KB_HD double whole_number(double u, double least, double beyond) {
  const double count = sub(beyond, least), n = floor_of(mul(u, count));
  return add(least, n < count ? n : sub(count, 1));
}

KB_HD double last_not_above(const Instruction& instruction, const void* data, double line, double x) {
  if (!(line >= 0 && line < instruction.lines)) return -1;  // NaN too
  const std::int64_t length = static_cast<std::int64_t>(instruction.value);
  const std::int64_t begin = static_cast<std::int64_t>(line) * length;
  std::int64_t low = -1, high = length;  // low: not above, high: above
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (load(static_cast<DType>(instruction.b), data, begin + middle) > x) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return static_cast<double>(low);
}

// Runs the instructions [begin, end) for one element; `current` is what Op::current gives. The compiler of the text
// guarantees depth, registers and jumps.
KB_HD double run(const Program& program, int begin, int end, std::uint64_t seed, std::int64_t element,
                 const void* const* reads, double current) {
  double stack[kStackMax], registers[kRegistersMax];
  double top = 0;  // the top of the stack lies here, the rest in stack[0, depth)
  int depth = 0;
  std::uint64_t group = 0;
  for (int at = begin; at < end; ++at) {
    const Instruction& instruction = program.code[at];
    const Op op = static_cast<Op>(instruction.op);
    const bool grouped = (instruction.a & kGrouped) != 0;  // of draws only
    const std::uint64_t which = grouped ? group : static_cast<std::uint64_t>(element);
    const std::uint64_t whole = grouped ? group : 0;  // a permutation without @ is one for the tensor
    if (op <= kLastValue) {
      stack[depth++] = top;
      top = pushed(program, instruction, seed, element, which, current, registers);
      continue;
    }
    if (op <= kLastUnary) {
      top = unary(op, top);
      continue;
    }
    if (op == Op::jump) {
      at = instruction.b - 1;
      continue;
    }
    if (op == Op::group) {
      group = 0x243F6A8885A308D3ull;
      continue;
    }
    const double last = top;  // all others pop at least one
    top = stack[--depth];
    if (op <= kLastBinary) {
      top = binary(op, top, last);
      continue;
    }
    switch (op) {
      case Op::let:
        registers[instruction.a] = last;
        break;
      case Op::jump_if_not:
        if (last == 0) at = instruction.b - 1;
        break;
      case Op::group_mix:
        group = mix64(group ^ bits_of(add(last, 0))) + 0x9E3779B97F4A7C15ull;
        break;
      case Op::integer:
        top = whole_number(unit_interval(first64(draw(program, seed, instruction, which))), top, last);
        break;
      case Op::permute:
      case Op::unpermute:
        top = placed(program, instruction, seed, top, last, whole);
        break;
      case Op::strata: {
        const double m = top;
        top = ascending(program, instruction, seed, stack[--depth], m, last, whole);
        break;
      }
      case Op::search:
        top = last_not_above(instruction, reads[instruction.a], top, last);
        break;
      case Op::byte_of:
        top = static_cast<double>(encode(static_cast<DType>(instruction.a), top) >> (8 * static_cast<int>(last)) & 255);
        break;
      default:  // read: replaces the index
        stack[depth++] = top;
        top = last >= 0 && last < instruction.value
                  ? load(static_cast<DType>(instruction.b), reads[instruction.a], static_cast<std::int64_t>(last))
                  : not_a_number();
    }
  }
  return top;
}

KB_HD double element_value(const Program& program, std::uint64_t seed, std::int64_t index, const void* const* reads) {
  return run(program, 0, program.length, seed, index, reads, 0);
}

}  // namespace kbench::inputs
