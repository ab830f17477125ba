// Laws and structural generators.
#include <cmath>

#include "verifier/inputs/emitter.h"

namespace kbench::inputs {

namespace {

std::string text_of(std::int64_t n) { return std::to_string(n); }
std::string text_of(double x) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "(%.17g)", x);
  return buffer;
}

// Sites of shared draws: from the name, so that two tensors agree.
std::uint16_t site_of(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<std::uint16_t>((hash ^ hash >> 16) & 0xFFF0u);
}

}  // namespace

void Emitter::emit_group() {
  if (group_ == nullptr && loop_counters_.empty()) return;
  const auto keys = group_;
  const auto outer_along = along_;
  group_ = nullptr;
  along_ = nullptr;
  in_group_ = true;
  put(Op::group, 0);
  if (keys == nullptr) {  // one a step of the loops around it
    put(Op::linear, 1);
    put(Op::group_mix, -1);
    for (const int counter : loop_counters_) put(Op::get, 1, counter), put(Op::group_mix, -1);
  } else {
    for (const Node& key : *keys) emit(key), put(Op::group_mix, -1);
  }
  in_group_ = false;
  group_ = keys;
  along_ = outer_along;
}

void Emitter::draw(Op op, int effect) {
  if (in_group_) throw BadGenerator("'" + text_ + "': a draw inside @(..)");
  const bool one_for_all = op == Op::permute || op == Op::unpermute || op == Op::strata;
  const bool grouped = group_ != nullptr || (!loop_counters_.empty() && !one_for_all);
  if (grouped) emit_group();
  put(op, effect, (grouped ? kGrouped : 0) | shared_, site_++);
}

// The whole generator, if it is one law that plain.h makes. Single precision, and 32 random bits, are not enough for
// f64.
Plain Emitter::plain_law(const Generator& generator) const {
  const Node& node = generator.body;
  if (!generator.lets.empty() || !generator.posts.empty() || node.kind != Node::Kind::call || node.grouped ||
      !node.along.empty() || node.arguments.empty() || node.arguments.size() > 2)
    return {};
  const auto a = constant(at(node, 0)), b = node.arguments.size() == 2 ? constant(at(node, 1)) : std::nullopt;
  const bool is_double = result_.program.dtype == DType::f64;
  if (node.text == "bernoulli" && a && !b) return {Law::bernoulli, 0, *a * 4294967296.0};
  if (!a || !b) return {};
  // Within single precision's range even at the law's far end.
  if (node.text == "normal" && !is_double && std::fabs(*a) + 7 * std::fabs(*b) < 3e38) return {Law::normal, *a, *b};
  if (node.text == "uniform" && !is_double) return {Law::uniform, *a, *b};
  const double count = *b - *a;
  if (node.text == "int" && *a == std::floor(*a) && *b == std::floor(*b) && count >= 1 && count <= 4294967296.0)
    return {Law::integer, *a, count};
  return {};
}

bool Emitter::emit_law(const Node& node) {
  const std::string& name = node.text;
  const auto parameter = [&](std::size_t i, Op op, double neutral) {
    if (constant(at(node, i)) == neutral) return;
    emit(at(node, i));
    put(op, -1);
  };
  if (name == "normal") {
    need_arguments(node, 2, 2);
    draw(Op::normal, 1);
    parameter(1, Op::mul, 1);
    parameter(0, Op::add, 0);
  } else if (name == "uniform" || name == "loguniform") {
    need_arguments(node, 2, 2);
    const bool logarithmic = name == "loguniform";
    const int outer_registers = registers_;
    const auto end = [&](std::size_t i) {
      emit(at(node, i));
      if (logarithmic) put(Op::log, 0);
    };
    end(0);
    const int least = keep();
    draw(Op::uniform, 1);
    end(1);
    put(Op::get, 1, least);
    put(Op::sub, -1);
    put(Op::mul, -1);
    put(Op::get, 1, least);
    put(Op::add, -1);
    if (logarithmic) put(Op::exp, 0);
    registers_ = outer_registers;
  } else if (name == "int") {
    need_arguments(node, 2, 2);
    const auto least = constant(at(node, 0)), beyond = constant(at(node, 1));
    if (least && beyond && *least >= *beyond) refuse("int(a,b) excludes b: there is no number in it", node);
    emit(at(node, 0));
    emit(at(node, 1));
    draw(Op::integer, -1);
  } else if (name == "bernoulli") {
    need_arguments(node, 1, 1);
    draw(Op::uniform, 1);
    emit(at(node, 0));
    put(Op::less, -1);
  } else if (name == "sign" && node.kind == Node::Kind::name) {
    draw(Op::uniform, 1);
    put(Op::push, 1, 0, 0, 0.5);
    put(Op::sub, -1);
    put(Op::sign, 0);
  } else if (name == "exponential" || name == "pareto") {
    need_arguments(node, 1, 1);
    draw(Op::uniform, 1);
    put(Op::log, 0);
    put(Op::negate, 0);
    emit(at(node, 0));
    if (name == "exponential") return put(Op::max, -1), true;
    put(Op::div, -1);  // u^(-1/a)
    put(Op::exp, 0);
  } else if (name == "choice") {
    emit_choice(node);
  } else if (name == "zipf") {
    emit_zipf(node);
  } else if (name == "shared") {
    emit_shared(node);
  } else if (name == "record") {
    emit_record(node);
  } else {
    return false;
  }
  return true;
}

// One draw; the weights are probabilities, or there are none and all are alike.
void Emitter::emit_choice(const Node& node) {
  need_arguments(node, 1, 32);
  const int outer_registers = registers_;
  const std::size_t count = node.arguments.size();
  draw(Op::uniform, 1);
  const int u = keep();
  std::vector<int> ends;
  double below = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& weight = node.arguments[i].weight;
    below += weight.empty() ? 1.0 / static_cast<double>(count) : need_constant(weight[0]);
    if (i + 1 == count) break;
    put(Op::get, 1, u);
    put(Op::push, 1, 0, 0, below);
    put(Op::less, -1);
    const int next = jump(Op::jump_if_not);
    emit(at(node, i));
    ends.push_back(jump(Op::jump));
    --depth_;
    land(next);
  }
  if (std::fabs(below - 1) > 1e-9) refuse("the weights of choice sum to " + std::to_string(below), node);
  emit(node.arguments.back().value);
  for (const int end : ends) land(end);
  registers_ = outer_registers;
}

// Rank r of 0..n-1 with a weight close to (r+1)^-s: the integral of x^-s from r+1 to r+2. `shuffled`: ranks are given
// to the numbers at random, once for the tensor.
void Emitter::emit_zipf(const Node& node) {
  need_arguments(node, 2, 3);
  const std::int64_t n = need_count(at(node, 0));
  const double s = need_constant(at(node, 1));
  const bool shuffled = node.arguments.size() == 3;
  if (shuffled && at(node, 2).text != "shuffled")
    refuse("'" + at(node, 2).text + "' is not known; zipf(n, s, shuffled)", node);
  if (n == 0) refuse("zipf of nothing", node);
  const double end = static_cast<double>(n) + 1;
  const std::string x = s == 1 ? "exp(" + text_of(std::log(end)) + "*uniform(0,1))"
                               : "(" + text_of(std::pow(end, 1 - s) - 1) + "*uniform(0,1)+1)^" + text_of(1 / (1 - s));
  const std::string rank = "clamp(floor(" + x + ")-1,0," + text_of(n - 1) + ")";
  if (!shuffled) return emit_text(rank);
  const int outer_registers = registers_;
  const int outer_placeholder = placeholder_;
  emit_text(rank);
  placeholder_ = keep();
  emit_text("perm(" + text_of(n) + ")@0 along _");
  placeholder_ = outer_placeholder;
  registers_ = outer_registers;
}

void Emitter::emit_shared(const Node& node) {
  need_arguments(node, 2, 2);
  const std::uint16_t outer_site = site_;
  site_ = site_of(at(node, 0).text);
  shared_ = kShared;
  emit(at(node, 1));
  shared_ = 0;
  site_ = outer_site;
}

// Bytes: fields from:to dtype = generator, the rest random. All bytes of one value of a field share its draws.
void Emitter::emit_record(const Node& node) {
  if (tensor_.dtype != DType::u8) refuse("record is for tensors of u8", node);
  const auto outer_group = group_;
  std::vector<int> ends;
  for (const Argument& field : node.arguments) {
    if (field.weight.empty()) refuse("a field is from:to dtype = generator", field.value);
    if (field.key == "bits") continue;
    const auto dtype = dtype_named(field.key);
    if (!dtype || field.upto.empty()) refuse("a field is from:to dtype = generator", field.value);
    const std::string from = text_of(need_count(field.value)), to = text_of(need_count(field.weight[0]));
    const std::string size = text_of(static_cast<std::int64_t>(bytes_of(*dtype)));
    emit_text("last >= " + from + " and last < " + to);
    const int next = jump(Op::jump_if_not);
    const std::vector<Node> value_number{parse("row").body, parse("(last-" + from + ")//" + size).body};
    group_ = &value_number;
    emit(field.upto[0]);
    group_ = outer_group;
    emit_text("(last-" + from + ")%" + size);
    put(Op::byte_of, -1, static_cast<int>(*dtype));
    ends.push_back(jump(Op::jump));
    --depth_;
    land(next);
  }
  emit_text("int(0,256)");
  for (const int end : ends) land(end);
}

// --- structural ---

std::optional<std::int64_t> Emitter::extent() const {
  const Program& program = result_.program;
  if (group_ == nullptr) return program.elements;
  if (group_->size() == 1 && (*group_)[0].text == "row") return program.shape[program.rank - 1];
  std::int64_t rest = program.elements;
  for (std::size_t axis = 0; axis < group_->size(); ++axis) {
    const Node& key = (*group_)[axis];
    if (key.kind != Node::Kind::name || key.text != "i" + std::to_string(axis) ||
        static_cast<int>(axis) >= program.rank)
      return std::nullopt;
    rest = program.shape[axis] == 0 ? 0 : rest / program.shape[axis];
  }
  return rest;
}

void Emitter::emit_position(const Node& node, std::optional<std::int64_t> expected) {
  if (along_ != nullptr) {
    const auto outer_group = group_;
    const auto position = along_;
    group_ = nullptr;
    along_ = nullptr;
    emit(*position);
    group_ = outer_group;
    along_ = position;
    return;
  }
  const auto there = extent();
  if (!there) refuse(node.text + " needs its position here: @(..) along <expression>", node);
  if (expected && *expected != *there && !loose_extent_) {
    refuse(node.text + " has " + text_of(*expected) + " entries for " + text_of(*there) + " elements", node);
  }
  put(Op::linear, 1);
  if (group_ == nullptr) return;
  put(Op::push, 1, 0, 0, static_cast<double>(*there));
  put(Op::mod, -1);
}

bool Emitter::emit_structural(const Node& node) {
  if (node.text == "perm" || node.text == "unperm") {
    need_arguments(node, 1, 1);
    const std::int64_t n = need_count(at(node, 0));
    emit_position(node, n);
    put(Op::push, 1, 0, 0, static_cast<double>(n));
    draw(node.text == "perm" ? Op::permute : Op::unpermute, -1);
  } else if (node.text == "subset") {
    emit_subset(node);
  } else if (node.text == "ladder") {
    emit_ladder(node);
  } else if (node.text == "multiset") {
    emit_multiset(node);
  } else {
    return false;
  }
  return true;
}

// Sorted ones come from strata of equal width, so that any one can be made alone.
void Emitter::emit_subset(const Node& node) {
  need_arguments(node, 2, 4);
  bool sorted = false;
  for (std::size_t i = 2; i < node.arguments.size(); ++i) {
    const Argument& option = node.arguments[i];
    if (option.key.empty() && option.value.text == "sorted")
      sorted = true;
    else if (option.key == "pad" && constant(option.value) == -1.0)
      continue;
    else
      refuse("subset knows sorted and pad=-1", option.value);
  }
  const auto n = constant(at(node, 1));
  if (sorted && along_ != nullptr && !constant(at(node, 0))) {  // of a size that is drawn too
    emit_position(node, std::nullopt);
    emit(at(node, 0));
  } else {
    const std::int64_t m = need_count(at(node, 0));
    if (n && *n < static_cast<double>(m)) refuse("subset of " + text_of(m) + " out of fewer", node);
    emit_position(node, m);
    if (sorted) put(Op::push, 1, 0, 0, static_cast<double>(m));
  }
  emit(at(node, 1));
  draw(sorted ? Op::strata : Op::permute, sorted ? -2 : -1);
}

// max((perm + 1) * max / n rounded up, min)
void Emitter::emit_ladder(const Node& node) {
  need_arguments(node, 2, 3);
  const std::int64_t n = need_count(at(node, 0));
  emit_position(node, n);
  put(Op::push, 1, 0, 0, static_cast<double>(n));
  draw(Op::permute, -1);
  put(Op::push, 1, 0, 0, 1);
  put(Op::add, -1);
  put(Op::push, 1, 0, 0, static_cast<double>(need_count(at(node, 1))));
  put(Op::mul, -1);
  put(Op::push, 1, 0, 0, static_cast<double>(n));
  put(Op::div, -1);
  put(Op::ceil, 0);
  const Argument* least = named(node, "min");
  if (least == nullptr) return;
  emit(least->value);
  put(Op::max, -1);
}

void Emitter::emit_multiset(const Node& node) {
  need_arguments(node, 1, 16);
  std::int64_t total = 0;
  const Argument* rest = nullptr;
  const auto distinct = [&](const Argument& entry) {
    return entry.upto.empty() ? 1 : need_count(entry.upto[0]) - need_count(entry.value) + 1;
  };
  for (const Argument& entry : node.arguments) {
    if (entry.weight.empty()) refuse("an entry of a multiset is value:count", entry.value);
    if (entry.weight[0].text == "rest" && &entry == &node.arguments.back())
      rest = &entry;
    else
      total += distinct(entry) * need_count(entry.weight[0]);
  }
  const std::int64_t entries = total;
  if (rest != nullptr) {
    const auto there = along_ == nullptr ? extent() : std::nullopt;
    if (!there) refuse("rest needs to know how many there are", node);
    if (*there < total) refuse("more entries than the " + text_of(*there) + " elements", node);
    total = *there;
  }
  const int outer_registers = registers_;
  emit_position(node, total);
  put(Op::push, 1, 0, 0, static_cast<double>(total));
  draw(Op::permute, -1);
  const int place = keep();
  std::vector<int> ends;
  std::int64_t begin = 0;
  for (const Argument& entry : node.arguments) {
    const bool final_one = &entry == &node.arguments.back();
    const std::int64_t each = &entry == rest ? total - entries : need_count(entry.weight[0]),
                       end = begin + each * distinct(entry);
    int next = 0;
    if (!final_one) {
      put(Op::get, 1, place);
      put(Op::push, 1, 0, 0, static_cast<double>(end));
      put(Op::less, -1);
      next = jump(Op::jump_if_not);
    }
    emit(entry.value);
    if (!entry.upto.empty()) {
      put(Op::get, 1, place);
      for (const auto& [op, value] : {std::pair{Op::sub, begin}, std::pair{Op::floor_div, each}})
        put(Op::push, 1, 0, 0, static_cast<double>(value)), put(op, -1);
      put(Op::add, -1);
    }
    begin = end;
    if (final_one) break;
    ends.push_back(jump(Op::jump));
    --depth_;
    land(next);
  }
  for (const int end : ends) land(end);
  registers_ = outer_registers;
}

}  // namespace kbench::inputs
