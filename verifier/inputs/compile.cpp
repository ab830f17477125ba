// A whole generator: its lets, its body, what applies to the tensor as one, and the order between tensors.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "verifier/inputs/emitter.h"
#include "verifier/inputs/generate.h"

namespace kbench::inputs {
namespace {

bool applies(const Node& node, const std::string& name) {
  if (node.kind == Node::Kind::indexed && node.text == name) return true;
  const auto in = [&](const Node& part) { return applies(part, name); };
  return std::any_of(node.group.begin(), node.group.end(), in) ||
         std::any_of(node.along.begin(), node.along.end(), in) ||
         std::any_of(node.arguments.begin(), node.arguments.end(), [&](const Argument& argument) {
           return in(argument.value) || std::any_of(argument.upto.begin(), argument.upto.end(), in) ||
                  std::any_of(argument.weight.begin(), argument.weight.end(), in);
         });
}

bool is_function(const Generator& generator, const std::string& name) {
  const auto in = [&](const Node& node) { return applies(node, name); };
  return in(generator.body) || std::any_of(generator.posts.begin(), generator.posts.end(), in) ||
         std::any_of(generator.lets.begin(), generator.lets.end(), [&](const Let& let) { return in(let.value); });
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

std::string index_name(int axis) { return "i" + std::to_string(axis); }

}  // namespace

Emitter::Emitter(const Problem& problem, const Tensor& tensor, const Dims& dims, std::string_view text)
    : problem_(problem), tensor_(tensor), dims_(dims), text_(text) {
  Program& program = result_.program;
  program.dtype = tensor.dtype;
  // What is the same on all GPUs is drawn as on the first.
  const Tensor* drawn = tensor.placement == Placement::replicated ? problem.find(tensor.name) : &tensor;
  program.tensor = static_cast<std::uint32_t>(drawn - problem.tensors.data());
  if (tensor.shape.size() > kRankMax) throw BadGenerator("more than " + std::to_string(kRankMax) + " indices");
  for (const std::string& extent : tensor.shape) program.shape[program.rank++] = evaluate(extent, dims);
  if (program.rank == 0) program.shape[program.rank++] = 1;
  program.elements = problem.elements(tensor, dims);
  program.row_length = program.row_stride = 1;
}

Compiled Emitter::compile(const Generator& generator) {
  for (const Let& let : generator.lets) {
    if (locals_.contains(let.name)) throw BadGenerator("'" + text_ + "': '" + let.name + "' is bound twice");
    if (is_function(generator, let.name)) {
      locals_[let.name] = {-1, &let.value};
      continue;
    }
    emit(let.value);
    locals_[let.name] = {keep(), nullptr};
  }
  std::vector<Node> pair_group;
  for (const Node& post : generator.posts) {
    if (post.text != "symmetric") continue;
    prepare_symmetric();
    for (int axis = 0; axis < result_.program.rank; ++axis) pair_group.push_back(parse(index_name(axis)).body);
    group_ = &pair_group;
  }
  emit_body(generator);
  for (const Node& post : generator.posts) emit_post(post);
  if (!finished_) result_.program.length = result_.program.total_length;
  result_.program.plain = plain_law(generator);
  return result_;
}

void Emitter::emit_body(const Generator& generator) {
  if (!emit_whole(generator.body)) emit(generator.body);
  if (result_.program.finish == Finish::raw_bits && !generator.posts.empty())
    refuse("nothing can follow bits", generator.posts[0]);
}

bool Emitter::emit_whole(const Node& node) {
  if (node.text == "bits" && node.kind == Node::Kind::name) {
    result_.program.finish = Finish::raw_bits;
    put(Op::push, 1);
  } else if (node.kind != Node::Kind::call) {
    return false;
  } else if (node.text == "offsets") {
    emit_offsets(node);
  } else if (node.text == "sizes") {
    emit_sizes(node, Finish::sizes, need_count(at(node, 0)));
  } else if (node.text == "top") {
    emit_top(node);
  } else {
    return false;
  }
  return true;
}

// offsets(n, total, cuts | cuts_with_repeats | list; sizes | sizes; weights=..): the last axis has n+1 entries, 0
// first, total last.
void Emitter::emit_offsets(const Node& node) {
  need_arguments(node, 3, 6);
  const std::int64_t n = need_count(at(node, 0)), total = need_count(at(node, 1));
  const std::string& kind = at(node, 2).text;
  const int last_axis = result_.program.rank - 1;
  if (result_.program.shape[last_axis] != n + 1)
    refuse("offsets of " + std::to_string(n) + " need a last axis of " + std::to_string(n + 1), node);
  const std::string ends =
      "where(last == 0, 0, where(last == " + std::to_string(n) + ", " + std::to_string(total) + ", ";
  if (kind == "cuts") {
    if (n < 1 || total < n) refuse("cuts need 1 <= n <= total", node);
    if (n == 1) return emit_text("where(last == 0, 0, " + std::to_string(total) + ")");
    const std::string m = std::to_string(n - 1), most = std::to_string(total - 1);
    return emit_text(ends + "1+subset(" + m + "," + most + ",sorted)@row along last-1))");
  }
  if (n == 0 && total != 0) refuse("offsets of nothing end at 0", node);
  if (kind == "cuts_with_repeats") {  // the gaps of sorted uniform draws are as exponential ones, for their sum
    emit_text("exponential(0)");
    return finish_sizes(Finish::offsets, n, total, 0, total);
  }
  if (kind == "sizes") return emit_sizes(node, Finish::offsets, n + 1);
  if (kind != "list" || node.arguments.size() != 4)
    refuse("offsets are by cuts, cuts_with_repeats, sizes; weights=.. or list; ..", node);
  loose_extent_ = true;
  emit(at(node, 3));
  loose_extent_ = false;
  finish_rows(Finish::prefix, last_axis);
}

void Emitter::emit_sizes(const Node& node, Finish finish, std::int64_t row_length) {
  const Argument *weights = named(node, "weights"), *least = named(node, "min"), *largest = named(node, "max");
  if (weights == nullptr) refuse("weights=.. is missing", node);
  const std::int64_t n = need_count(at(node, 0)), total = need_count(at(node, 1));
  const std::int64_t low = least == nullptr ? 0 : need_count(least->value),
                     high = largest == nullptr ? total : need_count(largest->value);
  Program& program = result_.program;
  const int last_axis = program.rank - 1;
  const bool flat = finish == Finish::sizes && program.shape[last_axis] != row_length && program.elements == row_length;
  if (!flat && program.shape[last_axis] != row_length)
    refuse("sizes need a last axis of " + std::to_string(row_length), node);
  const __int128 most = static_cast<__int128>(high) * n, fewest = static_cast<__int128>(low) * n;
  if (fewest > total || most < total)
    refuse("no " + std::to_string(n) + " sizes within min and max sum to " + std::to_string(total), node);
  loose_extent_ = true;
  emit(weights->value);
  loose_extent_ = false;
  finish_sizes(finish, n, total, low, std::min(high, total));
  if (flat) program.rows = program.elements > 0 ? 1 : 0, program.row_length = program.elements, program.row_stride = 1;
}

void Emitter::finish_sizes(Finish finish, std::int64_t n, std::int64_t total, std::int64_t least,
                           std::int64_t largest) {
  Program& program = result_.program;
  finish_rows(finish, program.rank - 1);
  if (n == 0) program.finish = Finish::prefix;  // the offsets of nothing: 0
  const double arguments[] = {static_cast<double>(n), static_cast<double>(total), static_cast<double>(least),
                              static_cast<double>(largest)};
  std::copy(std::begin(arguments), std::end(arguments), program.finish_arguments);
  if (finish_scratch_bytes(program) > kFinishScratchMax) throw BadGenerator("'" + text_ + "': too many lines of sizes");
}

// pages($len, page, pool), or of diff($offsets): a block table. Pages of a random order of the pool, no page twice, for
// the first ceil(length/page) entries of each sequence; -1 after them, and once the pool is spent.
void Emitter::emit_pages(const Node& node) {
  need_arguments(node, 3, 3);
  const bool offsets =
      at(node, 0).text == "diff" && at(node, 0).kind == Node::Kind::call && at(node, 0).arguments.size() == 1;
  const Node& source = offsets ? at(at(node, 0), 0) : at(node, 0);
  const Tensor* lengths =
      source.kind == Node::Kind::read && source.arguments.empty() ? problem_.find(source.text, tensor_.gpu) : nullptr;
  if (lengths == nullptr || lengths->shape.size() != 1) refuse("pages are of $lengths or diff($offsets)", node);
  const Program& program = result_.program;
  const std::int64_t entries = program.shape[program.rank - 1], sequences = program.rank == 1 ? 1 : program.shape[0];
  if (program.rank > 2 || problem_.elements(*lengths, dims_) != sequences + (offsets ? 1 : 0))
    refuse("'" + source.text + "' has another number of sequences", source);
  const std::string page = std::to_string(need_count(at(node, 1))), pool = std::to_string(need_count(at(node, 2)));
  if (page == "0") refuse("a page holds something", node);
  const auto used = [&](const std::string& sequence) {
    const std::string value = "$" + source.text + "[" + sequence + "]";
    const std::string length = offsets ? "($" + source.text + "[" + sequence + "+1]-" + value + ")" : value;
    return "min(ceil(" + length + "/" + page + ")," + std::to_string(entries) + ")";
  };
  const std::string row = program.rank == 1 ? "0" : "i0";
  emit_text("where(last < " + used(row) + ", perm(" + pool + ")@0 along over(sum, " + row + "; " + used("_") +
            ") + last, -1)");
}

// top(n; score[; shuffled]): each line along the last axis holds the numbers of 0..n-1 with the largest scores, best
// first or in random order; _ is the number.
void Emitter::emit_top(const Node& node) {
  need_arguments(node, 2, 3);
  if (node.arguments.size() == 3 && at(node, 2).text != "shuffled") refuse("top knows shuffled", at(node, 2));
  const std::int64_t n = need_count(at(node, 0));
  Program& program = result_.program;
  if (program.shape[program.rank - 1] > n) refuse("top of " + std::to_string(n) + " for more elements", node);
  put(Op::current, 1);
  placeholder_ = keep();
  emit(at(node, 1));
  placeholder_ = -1;
  finish_rows(Finish::top, program.rank - 1);
  program.finish_arguments[0] = static_cast<double>(n);
  program.finish_arguments[1] = node.arguments.size() == 3 ? 1 : 0;
}

// --- what follows | ---

int Emitter::axis_of(const Node& node) const {
  const int rank = result_.program.rank;
  if (node.text == "last") return rank - 1;
  for (int axis = 0; axis < rank; ++axis) {
    if (node.text == index_name(axis)) return axis;
  }
  refuse("an axis is needed: i0, i1, … or last", node);
}

// Rows along `axis`; what is emitted after this runs on the finished elements.
void Emitter::finish_rows(Finish finish, int axis) {
  Program& program = result_.program;
  if (finished_) throw BadGenerator("'" + text_ + "': a second step that needs whole rows");
  finished_ = true;
  program.finish = finish;
  program.length = program.total_length;
  program.row_length = program.shape[axis];
  program.row_stride = 1;
  for (int inner = axis + 1; inner < program.rank; ++inner) program.row_stride *= program.shape[inner];
  program.rows = program.elements == 0 ? 0 : program.elements / program.row_length;
  if (program.row_stride == 0) program.row_stride = 1;
  locals_.clear();
  index_registers_.clear();
  group_ = nullptr;
  registers_ = 0;
  depth_ = 0;
  loop_counters_.clear();
}

void Emitter::emit_kept(const Node& condition, const Node& value) {
  const int outer_registers = registers_;
  placeholder_ = keep();
  emit_where(condition, value, parse("_").body);
  placeholder_ = -1;
  registers_ = outer_registers;
}

void Emitter::emit_post(const Node& post) {
  const std::string& name = post.text;
  const auto row_step = [&](Finish finish) {
    finish_rows(finish, post.arguments.empty() ? result_.program.rank - 1 : axis_of(at(post, 0)));
  };
  if (name == "symmetric") return;  // see prepare_symmetric
  if (name == "softmax") return row_step(Finish::softmax);
  if (name == "l2norm") return row_step(Finish::l2norm);
  if (name == "sort") {
    const bool down = post.arguments.size() == 2 && at(post, 1).text == "desc";
    return row_step(down ? Finish::sort_down : Finish::sort_up);
  }
  if (name == "cumsum") {
    row_step(Finish::cumsum);
    const Argument* chunk = named(post, "chunk");
    result_.program.finish_arguments[0] =
        static_cast<double>(chunk == nullptr ? result_.program.row_length : need_count(chunk->value));
    if (result_.program.finish_arguments[0] < 1) result_.program.finish_arguments[0] = 1;
    return;
  }
  if (name == "sinkhorn") {  // of the last two axes
    need_arguments(post, 1, 1);
    Program& program = result_.program;
    if (program.rank < 2) refuse("sinkhorn needs two indices", post);
    finish_rows(Finish::sinkhorn, program.rank - 1);
    program.row_length *= program.shape[program.rank - 2];
    program.rows = program.elements == 0 ? 0 : program.elements / program.row_length;
    program.finish_arguments[0] = static_cast<double>(need_count(at(post, 0)));
    return;
  }
  if (finished_ && depth_ == 0) put(Op::current, 1);
  if (name == "fill") {
    need_arguments(post, 2, 2);
    emit_kept(at(post, 0), at(post, 1));
  } else if (name == "map") {
    need_arguments(post, 1, 1);
    const int outer_registers = registers_;
    placeholder_ = keep();
    emit(at(post, 0));
    placeholder_ = -1;
    registers_ = outer_registers;
  } else if (name == "clip") {
    need_arguments(post, 1, 1);
    emit(at(post, 0));
    put(Op::min, -1);
    emit(at(post, 0));
    put(Op::negate, 0);
    put(Op::max, -1);
  } else if (name == "fill_exact") {
    emit_fill_exact(post);
  } else if (name == "add_at") {
    emit_add_at(post);
  } else {
    refuse("unknown step '" + name + "'", post);
  }
}

// fill_exact(k, v): exactly k of all elements. along=i0: of each line along it. of=(i1,i2): of their combinations,
// alike for the rest.
void Emitter::emit_fill_exact(const Node& post) {
  need_arguments(post, 2, 3);
  const Program& program = result_.program;
  std::int64_t n = program.elements;
  std::string position = "linear", group = "0";
  if (const Argument* along = named(post, "along")) {
    const int axis = axis_of(along->value);
    std::vector<std::string> others;
    for (int other = 0; other < program.rank; ++other) {
      if (other != axis) others.push_back(index_name(other));
    }
    n = program.shape[axis];
    position = index_name(axis);
    group = others.empty() ? "0" : "(" + joined(others) + ")";
  } else if (const Argument* of = named(post, "of")) {
    n = 1;
    position = "0";
    for (const Argument& index : of->value.arguments) {
      const int axis = axis_of(index.value);
      n *= program.shape[axis];
      position = "(" + position + ")*" + std::to_string(program.shape[axis]) + "+" + index_name(axis);
    }
  }
  const std::int64_t k = need_count(at(post, 0));
  if (k > n) refuse("fill_exact of " + std::to_string(k) + " out of " + std::to_string(n), post);
  emit_kept(parse("perm(" + std::to_string(n) + ")@" + group + " along " + position + " < " + std::to_string(k)).body,
            at(post, 1));
}

// add_at(which, gen): adds gen where the last index is one of `which`: $ids of the row, or subset(m, n) of them.
void Emitter::emit_add_at(const Node& post) {
  need_arguments(post, 2, 2);
  constexpr std::int64_t kIndicesMax = 8;
  const Node& which = at(post, 0);
  std::string condition;
  if (which.kind == Node::Kind::call && which.text == "subset" && which.arguments.size() == 2) {
    condition = "perm(" + std::to_string(need_count(at(which, 1))) + ")@row along last < " +
                std::to_string(need_count(at(which, 0)));
  } else if (const Tensor* ids = which.kind == Node::Kind::read ? problem_.find(which.text, tensor_.gpu) : nullptr) {
    std::vector<std::string> leading;
    for (int axis = 0; axis + 1 < result_.program.rank; ++axis) leading.push_back(index_name(axis));
    if (ids->shape.size() == leading.size()) {
      condition = "last == $" + ids->name + "[" + joined(leading) + "]";
    } else if (ids->shape.size() == leading.size() + 1 && evaluate(ids->shape.back(), dims_) <= kIndicesMax) {
      leading.emplace_back();
      for (std::int64_t i = 0; i < evaluate(ids->shape.back(), dims_); ++i) {
        leading.back() = std::to_string(i);
        condition += (condition.empty() ? "" : " or ") + ("last == $" + ids->name) + "[" + joined(leading) + "]";
      }
    }
  }
  if (condition.empty())
    refuse("add_at takes subset(m, n) or $ids of the row (at most " + std::to_string(kIndicesMax) + ")", which);
  const int outer_registers = registers_;
  placeholder_ = keep();
  emit(parse(condition).body);
  const int past = jump(Op::jump_if_not);
  put(Op::get, 1, placeholder_);
  emit(at(post, 1));
  put(Op::add, -1);
  const int end = jump(Op::jump);
  --depth_;
  land(past);
  put(Op::get, 1, placeholder_);
  land(end);
  placeholder_ = -1;
  registers_ = outer_registers;
}

// The last two indices, larger first, stand for themselves: the element of (i, j) is that of (j, i).
void Emitter::prepare_symmetric() {
  const int rank = result_.program.rank;
  if (rank < 2) throw BadGenerator("'" + text_ + "': symmetric needs two indices");
  const std::string a = index_name(rank - 2), b = index_name(rank - 1);
  emit_text("max(" + a + "," + b + ")");
  const int larger = keep();
  emit_text("min(" + a + "," + b + ")");
  index_registers_ = {{a, larger}, {b, keep()}};
}

// --- public ---

Compiled compile(const Problem& problem, const Tensor& tensor, const Dims& dims) {
  try {
    return Emitter(problem, tensor, dims, tensor.gen).compile(parse(tensor.gen));
  } catch (const BadGenerator& fault) {
    throw BadGenerator("tensor '" + tensor.name + "': " + fault.what());
  } catch (const BadExpression& fault) {
    throw BadGenerator("tensor '" + tensor.name + "': " + fault.what());
  }
}

std::vector<std::size_t> order(const Problem& problem) {
  enum class Mark : std::uint8_t { none, open, done };
  std::vector<Mark> marks(problem.tensors.size());
  std::vector<std::size_t> sorted;
  const std::function<void(std::size_t)> visit = [&](std::size_t i) {
    const Tensor& tensor = problem.tensors[i];
    if (marks[i] == Mark::done || tensor.role == Role::output) return;
    if (marks[i] == Mark::open) throw BadGenerator("tensor '" + tensor.name + "': its generator depends on itself");
    marks[i] = Mark::open;
    for (const std::string& name : tensors_read(parse(tensor.gen))) {
      const Tensor* read = problem.find(name, tensor.gpu);
      if (read == nullptr) throw BadGenerator("tensor '" + tensor.name + "': no tensor '" + name + "'");
      visit(static_cast<std::size_t>(read - problem.tensors.data()));
    }
    marks[i] = Mark::done;
    sorted.push_back(i);
  };
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) visit(i);
  return sorted;
}

}  // namespace kbench::inputs
