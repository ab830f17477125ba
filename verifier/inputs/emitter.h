// From the tree of a generator to the instructions of a Program. Inner header of inputs/.
//
// Names in scope: dims and scalars of the problem, i0 i1 …, last, row, linear, pi, inf, nan, let-bound names, and `_`
// (the index of a let-bound function, or the value so far in a post-processing step). What is known at the shape is
// folded into constants here, by the same functions that the interpreter uses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verifier/inputs/interpret.h"
#include "verifier/inputs/syntax.h"

namespace kbench::inputs {

class Emitter {
 public:
  Emitter(const Problem& problem, const Tensor& tensor, const Dims& dims, std::string_view text);
  Compiled compile(const Generator& generator);

 private:
  // emitter.cpp: expressions
  void emit(const Node& node);
  void emit_text(const std::string& text);  // a generator written by the emitter itself
  void emit_name(const Node& node);
  void emit_read(const Node& node);
  void emit_segment(const Node& node);
  void put_read(Op op, const Node& node);
  void emit_applied(const Node& node);  // f[e] of a let-bound f
  void emit_unary(const Node& node);
  void emit_binary(const Node& node);
  void emit_call(const Node& node);
  void emit_where(const Node& condition, const Node& yes, const Node& no);
  void emit_pick(const Node& node);
  std::optional<double> constant(const Node& node) const;
  std::optional<double> constant_name(const std::string& name) const;
  double need_constant(const Node& node) const;
  std::int64_t need_count(const Node& node) const;  // a constant, whole, not negative

  // laws.cpp
  Plain plain_law(const Generator& generator) const;
  bool emit_law(const Node& node);  // false: not the name of one
  void emit_choice(const Node& node);
  void emit_zipf(const Node& node);
  void emit_shared(const Node& node);
  void emit_record(const Node& node);
  bool emit_structural(const Node& node);
  void emit_multiset(const Node& node);
  void emit_subset(const Node& node);
  void emit_ladder(const Node& node);
  void emit_position(const Node& node, std::optional<std::int64_t> expected);
  std::optional<std::int64_t> extent() const;  // positions of the active group
  void emit_group();
  void draw(Op op, int effect);

  // loops.cpp
  bool emit_loop(const Node& node);  // over, repeat, pack; false: not the name of one
  void emit_over(const Node& node);
  void emit_repeat(const Node& node);
  void emit_pack(const Node& node, std::int64_t values, int bits, const Node& value);
  int begin_loop(std::optional<std::int64_t> count, int count_register, int counter);  // the exit's jump, to be landed
  void end_loop(int exit, int counter);

  // posts.cpp: what applies to the whole text
  void emit_body(const Generator& generator);
  bool emit_whole(const Node& node);  // bits, offsets, sizes, top
  void emit_offsets(const Node& node);
  void emit_sizes(const Node& node, Finish finish, std::int64_t row_length);
  void finish_sizes(Finish finish, std::int64_t n, std::int64_t total, std::int64_t least, std::int64_t largest);
  void emit_pages(const Node& node);
  void emit_top(const Node& node);
  void emit_post(const Node& post);
  void emit_fill_exact(const Node& post);
  void emit_add_at(const Node& post);
  void finish_rows(Finish finish, int axis);
  int axis_of(const Node& node) const;
  void prepare_symmetric();
  void emit_kept(const Node& condition, const Node& value);  // where(condition, value, the value so far)

  // emitter.cpp: instructions
  void put(Op op, int effect, int a = 0, int b = 0, double value = 0);
  int jump(Op op);  // its target is set by `land`
  void land(int instruction);
  int keep();  // pop into a new register
  [[noreturn]] void refuse(const std::string& what, const Node& node) const;
  const Argument* named(const Node& node, std::string_view key) const;
  const Node& at(const Node& node, std::size_t argument) const;
  void need_arguments(const Node& node, std::size_t least, std::size_t most) const;

  struct Local {
    int reg = -1;  // its value's register, or
    const Node* function = nullptr;
  };
  const Problem& problem_;
  const Tensor& tensor_;
  const Dims& dims_;
  std::string text_;
  Compiled result_{};
  std::map<std::string, Local> locals_;
  std::map<std::string, int> index_registers_;  // indices that stand for others: symmetric
  const std::vector<Node>* group_ = nullptr;    // of the draws being emitted; null: one a element
  const Node* along_ = nullptr;
  int placeholder_ = -1;            // register of `_`
  std::vector<int> loop_counters_;  // registers; an ungrouped draw inside is another one each time
  std::vector<int> loop_heads_;     // where they begin
  bool in_group_ = false, loose_extent_ = false, finished_ = false;
  std::uint16_t site_ = 0;
  std::uint8_t shared_ = 0;
  int depth_ = 0, registers_ = 0;
};

}  // namespace kbench::inputs
