// The text of a generator as a tree. Inner header of inputs/.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verifier/inputs/inputs.h"

namespace kbench::inputs {

struct Argument;

struct Node {
  enum class Kind : std::uint8_t { number, name, call, read, indexed, unary, binary };
  Kind kind = Kind::number;
  std::string text;  // name, function, tensor or operator
  double number = 0;
  std::size_t column = 0;  // in the text, from 0
  std::vector<Argument> arguments;
  bool grouped = false;     // an @ applies
  std::vector<Node> group;  // what it lists
  std::vector<Node> along;  // one: the position given by `along`
};

// `key=value`, `value`, `value:weight`, `value..upto:weight`; a field of a record, `value:weight key = upto`.
struct Argument {
  std::string key;
  Node value;
  std::vector<Node> upto, weight;  // none or one
};

struct Let {
  std::string name;
  Node value;
};
struct Generator {
  std::vector<Let> lets;
  Node body;
  std::vector<Node> posts;  // calls, in order
};

inline constexpr std::size_t kGeneratorMax = 2000;  // characters
inline constexpr int kNestingMax = 40;

// Throws BadGenerator: "'normal(0,': a value is missing at column 10".
Generator parse(std::string_view text);
[[noreturn]] void fail(std::string_view text, const std::string& what, std::size_t column);

// Names of the tensors it reads, each once, in order of appearance.
std::vector<std::string> tensors_read(const Generator& generator);

}  // namespace kbench::inputs
