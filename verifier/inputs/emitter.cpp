#include "verifier/inputs/emitter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kbench::inputs {
namespace {

constexpr double kPi = 3.14159265358979323846;

const std::map<std::string, Op, std::less<>> kUnary{
    {"abs", Op::abs}, {"sign", Op::sign},   {"sqrt", Op::sqrt},   {"exp", Op::exp},     {"log", Op::log},
    {"ln", Op::log},  {"log1p", Op::log1p}, {"round", Op::round}, {"floor", Op::floor}, {"ceil", Op::ceil},
    {"sin", Op::sin}, {"cos", Op::cos},     {"tanh", Op::tanh}};

// > and >= are < and <= with the sides exchanged; != is == negated.
struct Operator {
  Op op;
  bool exchanged = false, negated = false;
};
const std::map<std::string, Operator, std::less<>> kBinary{{"+", {Op::add}},
                                                           {"-", {Op::sub}},
                                                           {"*", {Op::mul}},
                                                           {"/", {Op::div}},
                                                           {"//", {Op::floor_div}},
                                                           {"%", {Op::mod}},
                                                           {"^", {Op::power}},
                                                           {"==", {Op::equal}},
                                                           {"!=", {Op::equal, false, true}},
                                                           {"<", {Op::less}},
                                                           {"<=", {Op::less_equal}},
                                                           {">", {Op::less, true}},
                                                           {">=", {Op::less_equal, true}},
                                                           {"and", {Op::logical_and}},
                                                           {"or", {Op::logical_or}},
                                                           {"min", {Op::min}},
                                                           {"max", {Op::max}}};

double apply(const Operator& how, double left, double right) {
  const double value = how.exchanged ? binary(how.op, right, left) : binary(how.op, left, right);
  return how.negated ? unary(Op::logical_not, value) : value;
}

}  // namespace

void Emitter::refuse(const std::string& what, const Node& node) const { fail(text_, what, node.column); }

void Emitter::put(Op op, int effect, int a, int b, double value) {
  Program& program = result_.program;
  if (program.total_length == kInstructionsMax) {
    throw BadGenerator("'" + text_ + "': more than " + std::to_string(kInstructionsMax) + " instructions");
  }
  depth_ += effect;
  if (depth_ > kStackMax)
    throw BadGenerator("'" + text_ + "': more than " + std::to_string(kStackMax) + " values at once");
  program.code[program.total_length++] = {static_cast<std::uint8_t>(op), static_cast<std::uint8_t>(a),
                                          static_cast<std::uint16_t>(b), 0, value};
}

int Emitter::jump(Op op) {
  put(op, op == Op::jump ? 0 : -1);
  return result_.program.total_length - 1;
}
void Emitter::land(int instruction) {
  result_.program.code[instruction].b = static_cast<std::uint16_t>(result_.program.total_length);
}

int Emitter::keep() {
  if (registers_ == kRegistersMax)
    throw BadGenerator("'" + text_ + "': more than " + std::to_string(kRegistersMax) + " values kept at once");
  put(Op::let, -1, registers_);
  return registers_++;
}

const Argument* Emitter::named(const Node& node, std::string_view key) const {
  for (const Argument& argument : node.arguments) {
    if (argument.key == key) return &argument;
  }
  return nullptr;
}

const Node& Emitter::at(const Node& node, std::size_t argument) const { return node.arguments.at(argument).value; }

void Emitter::need_arguments(const Node& node, std::size_t least, std::size_t most) const {
  const std::size_t count = node.arguments.size();
  if (count >= least && count <= most) return;
  const std::string expected =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  refuse(node.text + " takes " + expected + " arguments, not " + std::to_string(count), node);
}

// --- constants ---

std::optional<double> Emitter::constant_name(const std::string& name) const {
  if (locals_.contains(name)) return std::nullopt;
  if (name == "pi") return kPi;
  if (name == "inf") return infinity();
  if (name == "gpu" && !dims_.contains(name)) return 0;  // the number of the GPU whose shard is made
  if (name == "nan") return not_a_number();
  if (const auto dim = dims_.find(name); dim != dims_.end()) return static_cast<double>(dim->second);
  for (const Scalar& scalar : problem_.scalars) {
    if (scalar.name == name) return scalar.value;
  }
  return std::nullopt;
}

std::optional<double> Emitter::constant(const Node& node) const {
  if (node.kind == Node::Kind::number) return node.number;
  if (node.kind == Node::Kind::name) return constant_name(node.text);
  if (node.kind == Node::Kind::read || node.kind == Node::Kind::indexed) return std::nullopt;
  std::vector<double> values;
  for (const Argument& argument : node.arguments) {
    const std::optional<double> value = constant(argument.value);
    if (!value || !argument.key.empty() || !argument.weight.empty()) return std::nullopt;
    values.push_back(*value);
  }
  if (node.kind == Node::Kind::unary) return -values.at(0);
  if (const auto function = kUnary.find(node.text); function != kUnary.end() && values.size() == 1)
    return unary(function->second, values[0]);
  const auto operation = kBinary.find(node.text);
  if (operation == kBinary.end() || values.size() < 2) return std::nullopt;
  double result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) result = apply(operation->second, result, values[i]);
  return result;
}

double Emitter::need_constant(const Node& node) const {
  const std::optional<double> value = constant(node);
  if (!value) refuse("must be known at the shape: numbers and dims only", node);
  return *value;
}

std::int64_t Emitter::need_count(const Node& node) const {
  const double value = need_constant(node);
  if (!(value >= 0 && value < 4503599627370496.0 && value == std::floor(value)))
    refuse("must be a whole number, not " + std::to_string(value), node);
  return static_cast<std::int64_t>(value);
}

// --- expressions ---

void Emitter::emit(const Node& node) {
  if (const std::optional<double> value = constant(node)) return put(Op::push, 1, 0, 0, *value);
  const auto outer_group = group_;
  const auto outer_along = along_;
  if (node.grouped) {
    group_ = &node.group;
    if (!node.along.empty()) along_ = &node.along[0];
  }
  switch (node.kind) {
    case Node::Kind::name:
      emit_name(node);
      break;
    case Node::Kind::read:
      emit_read(node);
      break;
    case Node::Kind::indexed:
      emit_applied(node);
      break;
    case Node::Kind::unary:
      emit_unary(node);
      break;
    case Node::Kind::binary:
      emit_binary(node);
      break;
    default:
      emit_call(node);
  }
  group_ = outer_group;
  along_ = outer_along;
}

void Emitter::emit_text(const std::string& text) { emit(parse(text).body); }

void Emitter::emit_name(const Node& node) {
  const std::string& name = node.text;
  const int last_axis = result_.program.rank - 1;
  if (name == "_") {
    if (placeholder_ < 0) refuse("_ stands for nothing here", node);
    return put(Op::get, 1, placeholder_);
  }
  if (const auto local = locals_.find(name); local != locals_.end()) {
    if (local->second.function != nullptr) refuse("'" + name + "' needs an index: " + name + "[..]", node);
    return put(Op::get, 1, local->second.reg);
  }
  const std::string index = name == "last" ? "i" + std::to_string(last_axis) : name;
  if (const auto substitute = index_registers_.find(index); substitute != index_registers_.end())
    return put(Op::get, 1, substitute->second);
  if (index.size() == 2 && index[0] == 'i' && index[1] >= '0' && index[1] <= '9') {
    if (index[1] - '0' > last_axis) refuse("the tensor has no index " + index, node);
    return put(Op::index, 1, index[1] - '0');
  }
  if (name == "linear") return put(Op::linear, 1);
  if (name == "row") return put(Op::row, 1);
  if (name == "zeros") return put(Op::push, 1);
  if (emit_law(node)) return;
  if (name == "bits") refuse("bits stands alone", node);
  refuse("unknown name '" + name + "'", node);
}

void Emitter::emit_read(const Node& node) {
  const Tensor* source = problem_.find(node.text, tensor_.gpu);
  if (source == nullptr) refuse("no tensor '" + node.text + "'", node);
  std::vector<std::int64_t> shape;
  for (const std::string& extent : source->shape) shape.push_back(evaluate(extent, dims_));
  const Program& program = result_.program;
  if (node.arguments.empty()) {
    const bool same = shape == std::vector<std::int64_t>(program.shape, program.shape + program.rank) ||
                      (shape.empty() && program.elements == 1);
    if (!same) refuse("'" + node.text + "' has another shape: give its indices", node);
    put(Op::linear, 1);
  } else {
    if (node.arguments.size() != shape.size())
      refuse("'" + node.text + "' has " + std::to_string(shape.size()) + " indices", node);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (axis != 0) put(Op::push, 1, 0, 0, static_cast<double>(shape[axis])), put(Op::mul, -1);
      emit(at(node, axis));
      if (axis != 0) put(Op::add, -1);
    }
  }
  put_read(Op::read, node);
}

// Replaces the top by what `op` makes of it and the tensor that `node` names.
void Emitter::put_read(Op op, const Node& node) {
  const Tensor* source = problem_.find(node.text, tensor_.gpu);
  if (source == nullptr) refuse("no tensor '" + node.text + "'", node);
  if (source->role == Role::output) refuse("'" + node.text + "' is an output", node);
  if (source->name == tensor_.name) refuse("a tensor cannot read itself", node);
  if (tensor_.placement == Placement::replicated && source->placement == Placement::shard)
    refuse("'" + node.text + "' is another on each GPU, and this tensor the same on all", node);
  auto& reads = result_.reads;
  const auto known = std::find(reads.begin(), reads.end(), node.text);
  const int number = static_cast<int>(known - reads.begin());
  if (known == reads.end()) reads.push_back(node.text);
  if (reads.size() > kReadsMax) refuse("reads more than " + std::to_string(kReadsMax) + " tensors", node);
  const std::int64_t elements = problem_.elements(*source, dims_);
  const bool search = op == Op::search;
  const std::int64_t length = search ? evaluate(source->shape.back(), dims_) : elements;
  const std::int64_t lines = search && length > 0 ? elements / length : 0;
  if (lines > std::numeric_limits<std::uint32_t>::max()) refuse("'" + node.text + "' has too many lines", node);
  put(op, search ? -1 : 0, number, static_cast<int>(source->dtype), static_cast<double>(length));
  result_.program.code[result_.program.total_length - 1].lines = static_cast<std::uint32_t>(lines);
}

// segment($offsets, position): which of the ragged segments the position (by default the flat index) lies in.
// segment($offsets[e, ..], position): of that line of the offsets.
void Emitter::emit_segment(const Node& node) {
  need_arguments(node, 1, 2);
  const Node& offsets = at(node, 0);
  const Tensor* source = offsets.kind == Node::Kind::read ? problem_.find(offsets.text, tensor_.gpu) : nullptr;
  if (source == nullptr || source->shape.size() != offsets.arguments.size() + 1)
    refuse("segment is of $offsets, all its indices but the last given", node);
  put(Op::push, 1);
  for (std::size_t axis = 0; axis < offsets.arguments.size(); ++axis) {
    put(Op::push, 1, 0, 0, static_cast<double>(evaluate(source->shape[axis], dims_)));
    put(Op::mul, -1);
    emit(at(offsets, axis));
    put(Op::add, -1);
  }
  if (node.arguments.size() == 2) {
    emit(at(node, 1));
  } else {
    put(Op::linear, 1);
  }
  put_read(Op::search, at(node, 0));
}

// The function's text with `_`, and the position of its structural generators, standing for the index.
void Emitter::emit_applied(const Node& node) {
  const auto local = locals_.find(node.text);
  if (local == locals_.end() || local->second.function == nullptr)
    refuse("'" + node.text + "' is no let-bound name", node);
  if (node.arguments.size() != 1) refuse("one index is needed", node);
  const int outer_registers = registers_, outer_placeholder = placeholder_;
  const Node* outer_along = along_;
  emit(at(node, 0));
  placeholder_ = keep();
  const Node position = parse("_").body;
  along_ = &position;
  emit(*local->second.function);
  along_ = outer_along;
  placeholder_ = outer_placeholder;
  registers_ = outer_registers;
}

void Emitter::emit_unary(const Node& node) {
  emit(at(node, 0));
  put(Op::negate, 0);
}

void Emitter::emit_binary(const Node& node) {
  const Operator& how = kBinary.at(node.text);
  emit(at(node, how.exchanged ? 1 : 0));
  emit(at(node, how.exchanged ? 0 : 1));
  put(how.op, -1);
  if (how.negated) put(Op::logical_not, 0);
}

void Emitter::emit_call(const Node& node) {
  const std::string& name = node.text;
  if (const auto function = kUnary.find(name); function != kUnary.end()) {
    need_arguments(node, 1, 1);
    emit(at(node, 0));
    return put(function->second, 0);
  }
  if (name == "min" || name == "max") {
    need_arguments(node, 2, 16);
    emit(at(node, 0));
    for (std::size_t i = 1; i < node.arguments.size(); ++i)
      emit(at(node, i)), put(name == "min" ? Op::min : Op::max, -1);
    return;
  }
  if (name == "clamp") {
    need_arguments(node, 3, 3);
    emit(at(node, 0));
    emit(at(node, 1));
    put(Op::max, -1);
    emit(at(node, 2));
    return put(Op::min, -1);
  }
  if (name == "const") {
    need_arguments(node, 1, 1);
    return emit(at(node, 0));
  }
  if (name == "where") {
    need_arguments(node, 3, 3);
    return emit_where(at(node, 0), at(node, 1), at(node, 2));
  }
  if (name == "pick") return emit_pick(node);
  if (name == "segment") return emit_segment(node);
  if (name == "pages") return emit_pages(node);
  if (emit_law(node) || emit_structural(node) || emit_loop(node)) return;
  refuse("unknown function '" + name + "'", node);
}

void Emitter::emit_where(const Node& condition, const Node& yes, const Node& no) {
  emit(condition);
  const int past_yes = jump(Op::jump_if_not);
  emit(yes);
  const int past_no = jump(Op::jump);
  --depth_;
  land(past_yes);
  emit(no);
  land(past_no);
}

void Emitter::emit_pick(const Node& node) {
  need_arguments(node, 2, 17);
  const int outer_registers = registers_;
  emit(at(node, 0));
  const int which = keep();
  std::vector<int> ends;
  for (std::size_t i = 1; i + 1 < node.arguments.size(); ++i) {
    put(Op::get, 1, which);
    put(Op::push, 1, 0, 0, static_cast<double>(i - 1));
    put(Op::equal, -1);
    const int next = jump(Op::jump_if_not);
    emit(at(node, i));
    ends.push_back(jump(Op::jump));
    --depth_;
    land(next);
  }
  emit(node.arguments.back().value);
  for (const int end : ends) land(end);
  registers_ = outer_registers;
}

}  // namespace kbench::inputs
