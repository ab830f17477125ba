// Loops inside an element's expression: instructions that jump back. `_` is the counter, or the value so far.
#include <cmath>

#include "verifier/inputs/emitter.h"

namespace kbench::inputs {

// Counts from 0 in `counter`, which is a register. The number of steps is a constant or the value of a register.
int Emitter::begin_loop(std::optional<std::int64_t> count, int count_register, int counter) {
  const int head = result_.program.total_length;
  put(Op::get, 1, counter);
  if (count)
    put(Op::push, 1, 0, 0, static_cast<double>(*count));
  else
    put(Op::get, 1, count_register);
  put(Op::less, -1);
  loop_counters_.push_back(counter);
  loop_heads_.push_back(head);
  return jump(Op::jump_if_not);
}

void Emitter::end_loop(int exit, int counter) {
  put(Op::get, 1, counter);
  put(Op::push, 1, 0, 0, 1);
  put(Op::add, -1);
  put(Op::let, -1, counter);
  result_.program.code[jump(Op::jump)].b = static_cast<std::uint16_t>(loop_heads_.back());
  land(exit);
  loop_counters_.pop_back();
  loop_heads_.pop_back();
}

bool Emitter::emit_loop(const Node& node) {
  if (node.text == "over") {
    emit_over(node);
  } else if (node.text == "repeat") {
    emit_repeat(node);
  } else if (node.text == "pack") {
    need_arguments(node, 3, 3);
    emit_pack(node, need_count(at(node, 0)), static_cast<int>(need_count(at(node, 1))), at(node, 2));
  } else if (node.text == "pack4x2" || node.text == "pack8x4") {
    need_arguments(node, 1, 1);
    emit_pack(node, node.text == "pack4x2" ? 4 : 8, node.text == "pack4x2" ? 2 : 4, at(node, 0));
  } else {
    return false;
  }
  return true;
}

// over(sum | max | min, n; e): of e for _ = 0 .. n-1. n may be drawn; beyond kLoopMax there are no more steps.
void Emitter::emit_over(const Node& node) {
  need_arguments(node, 3, 3);
  const std::string& kind = at(node, 0).text;
  const bool sum = kind == "sum", max = kind == "max";
  if (!sum && !max && kind != "min") refuse("over takes sum, max or min", at(node, 0));
  const int outer_registers = registers_, outer_placeholder = placeholder_;
  int count_register = -1;
  std::optional<std::int64_t> count;
  if (constant(at(node, 1))) {
    count = need_count(at(node, 1));
    if (*count > kLoopMax) refuse("more than " + std::to_string(kLoopMax) + " steps", at(node, 1));
  } else {
    emit(at(node, 1));
    put(Op::push, 1, 0, 0, kLoopMax);
    put(Op::min, -1);
    count_register = keep();
  }
  put(Op::push, 1, 0, 0, sum ? 0 : max ? -infinity() : infinity());
  const int so_far = keep();
  put(Op::push, 1);
  const int counter = keep();
  const int exit = begin_loop(count, count_register, counter);
  placeholder_ = counter;
  emit(at(node, 2));
  placeholder_ = outer_placeholder;
  put(Op::get, 1, so_far);
  put(sum ? Op::add : max ? Op::max : Op::min, -1);
  put(Op::let, -1, so_far);
  end_loop(exit, counter);
  put(Op::get, 1, so_far);
  registers_ = outer_registers;
}

// repeat(n, start; e): n times, the value so far being _.
void Emitter::emit_repeat(const Node& node) {
  need_arguments(node, 3, 3);
  const std::int64_t count = need_count(at(node, 0));
  if (count > kLoopMax) refuse("more than " + std::to_string(kLoopMax) + " steps", at(node, 0));
  const int outer_registers = registers_, outer_placeholder = placeholder_;
  emit(at(node, 1));
  const int so_far = keep();
  put(Op::push, 1);
  const int counter = keep();
  const int exit = begin_loop(count, -1, counter);
  placeholder_ = so_far;
  emit(at(node, 2));
  placeholder_ = outer_placeholder;
  put(Op::let, -1, so_far);
  end_loop(exit, counter);
  put(Op::get, 1, so_far);
  registers_ = outer_registers;
}

// pack(n, bits; e): n small numbers in one, that of _ = 0 in the low bits. In a signed tensor that it fills, the
// highest bit is the sign's.
void Emitter::emit_pack(const Node& node, std::int64_t values, int bits, const Node& value) {
  constexpr std::int64_t kBitsMax = 52;  // of a double
  if (values < 1 || bits < 1 || values * bits > kBitsMax) refuse("1 to 52 bits can be packed", node);
  const int outer_registers = registers_, outer_placeholder = placeholder_;
  put(Op::push, 1);
  const int so_far = keep();
  put(Op::push, 1);
  const int counter = keep();
  const int exit = begin_loop(values, -1, counter);
  put(Op::get, 1, so_far);  // from the highest down
  put(Op::push, 1, 0, 0, std::ldexp(1.0, bits));
  put(Op::mul, -1);
  put(Op::push, 1, 0, 0, static_cast<double>(values - 1));
  put(Op::get, 1, counter);
  put(Op::sub, -1);
  placeholder_ = keep();
  emit(value);
  --registers_;
  placeholder_ = outer_placeholder;
  put(Op::add, -1);
  put(Op::let, -1, so_far);
  end_loop(exit, counter);
  put(Op::get, 1, so_far);
  registers_ = outer_registers;
  const DType dtype = result_.program.dtype;
  const bool is_signed = dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64;
  const int width = 8 * static_cast<int>(bytes_of(dtype));
  if (!is_signed || values * bits != width) return;
  placeholder_ = keep();
  emit_text("where(_ < 2^" + std::to_string(width - 1) + ", _, _-2^" + std::to_string(width) + ")");
  placeholder_ = outer_placeholder;
  registers_ = outer_registers;
}

}  // namespace kbench::inputs
