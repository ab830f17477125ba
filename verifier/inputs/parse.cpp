#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "verifier/inputs/syntax.h"

namespace kbench::inputs {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)); }

// Recursive descent. Binding, loosest first: or, and, comparison, + -, * / // %, sign, ^ (to the right), @ and [].
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Generator whole() {
    Generator generator;
    if (take_word("let")) {
      do {
        const std::string name = word();
        if (name.empty()) error("a name is missing");
        expect("=");
        generator.lets.push_back({name, expression()});
      } while (take(","));
      expect(":");
    }
    generator.body = expression();
    while (take("|")) generator.posts.push_back(post());
    skip_spaces();
    if (at_ != text_.size()) error("unexpected '" + std::string(1, text_[at_]) + "'");
    return generator;
  }

 private:
  [[noreturn]] void error(const std::string& what) const { fail(text_, what, at_); }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    operator_at_ = at_;
    at_ += token.size();
    return true;
  }
  // `token`, but not where it is the beginning of `longer`.
  bool take_unless(std::string_view token, std::string_view longer) {
    skip_spaces();
    return text_.substr(at_, longer.size()) != longer && take(token);
  }
  bool take_word(std::string_view expected) {
    skip_spaces();
    const std::size_t end = at_ + expected.size();
    return (end >= text_.size() || !in_name(text_[end])) && take(expected);
  }
  void expect(std::string_view token) {
    if (!take(token)) error("'" + std::string(token) + "' is missing");
  }
  std::string word() {
    skip_spaces();
    const std::size_t begin = at_;
    if (at_ < text_.size() && starts_name(text_[at_])) {
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  static Node operation(Node::Kind kind, std::string_view op, std::size_t column, std::vector<Argument> arguments) {
    Node node;
    node.kind = kind;
    node.text = op;
    node.column = column;
    node.arguments = std::move(arguments);
    return node;
  }
  static Node binary(std::string_view op, std::size_t column, Node left, Node right) {
    return operation(Node::Kind::binary, op, column, {{"", std::move(left), {}, {}}, {"", std::move(right), {}, {}}});
  }

  void deepen() {
    if (++nesting_ > kNestingMax) error("nested deeper than " + std::to_string(kNestingMax));
  }

  Node expression() {
    deepen();
    Node node = conjunction();
    while (take_word("or")) node = joined("or", std::move(node), &Parser::conjunction);
    --nesting_;
    return node;
  }
  Node joined(std::string_view op, Node left, Node (Parser::*next)()) {
    const std::size_t column = operator_at_;
    return binary(op, column, std::move(left), (this->*next)());
  }
  Node conjunction() {
    Node node = comparison();
    while (take_word("and")) node = joined("and", std::move(node), &Parser::comparison);
    return node;
  }
  Node comparison() {
    Node node = sum();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (take(op)) return joined(op, std::move(node), &Parser::sum);
    }
    return node;
  }
  Node sum() {
    Node node = product();
    for (;;) {
      if (take("+"))
        node = joined("+", std::move(node), &Parser::product);
      else if (take("-"))
        node = joined("-", std::move(node), &Parser::product);
      else
        return node;
    }
  }
  Node product() {
    Node node = signed_power();
    for (;;) {
      if (take("*"))
        node = joined("*", std::move(node), &Parser::signed_power);
      else if (take("//"))
        node = joined("//", std::move(node), &Parser::signed_power);
      else if (take("/"))
        node = joined("/", std::move(node), &Parser::signed_power);
      else if (take("%"))
        node = joined("%", std::move(node), &Parser::signed_power);
      else
        return node;
    }
  }
  Node signed_power() {
    if (!take("-")) return powered();
    const std::size_t column = operator_at_;
    deepen();
    Node node = operation(Node::Kind::unary, "-", column, {{"", signed_power(), {}, {}}});
    --nesting_;
    return node;
  }
  Node powered() {
    Node node = postfixed();
    if (!take("^")) return node;
    return joined("^", std::move(node), &Parser::signed_power);
  }

  Node postfixed() {
    Node node = primary();
    while (take("@")) {
      if (node.grouped) error("a second @");
      node.grouped = true;
      if (take("(")) {
        do node.group.push_back(expression());
        while (take(","));
        expect(")");
      } else {
        node.group.push_back(primary());
      }
      if (take_word("along")) node.along.push_back(sum());
    }
    return node;
  }

  Node primary() {
    skip_spaces();
    const std::size_t column = at_;
    if (at_ == text_.size()) error("a value is missing");
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    if (take("(")) {
      Node node = expression();
      expect(")");
      return node;
    }
    const bool read = take("$");
    Node node;
    node.column = column;
    node.text = word();
    node.kind = read ? Node::Kind::read : Node::Kind::name;
    if (node.text.empty())
      error(read ? "a tensor's name is missing" : "unexpected '" + std::string(1, text_[at_]) + "'");
    if (take("[")) {
      if (!read) node.kind = Node::Kind::indexed;
      do node.arguments.push_back({"", expression(), {}, {}});
      while (take(","));
      expect("]");
    } else if (!read && take("(")) {
      node.kind = Node::Kind::call;
      node.arguments = arguments();
    }
    return node;
  }

  Node number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    };
    const auto digit_at = [&](std::size_t i) {
      return i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i]));
    };
    digits();
    if (at_ < text_.size() && text_[at_] == '.' && digit_at(at_ + 1)) {  // not the .. of a range
      ++at_;
      digits();
    }
    if (at_ < text_.size() && text_[at_] == 'e') {
      const bool has_sign = at_ + 1 < text_.size() && (text_[at_ + 1] == '-' || text_[at_ + 1] == '+');
      if (digit_at(at_ + (has_sign ? 2 : 1))) {
        at_ += has_sign ? 2 : 1;
        digits();
      }
    }
    Node node;
    node.column = begin;
    node.text = std::string(text_.substr(begin, at_ - begin));
    node.number = std::strtod(node.text.c_str(), nullptr);
    if (!std::isfinite(node.number)) fail(text_, "'" + node.text + "' is too large", begin);
    return node;
  }

  std::vector<Argument> arguments() {  // after the opening parenthesis
    std::vector<Argument> list;
    if (take(")")) return list;
    do list.push_back(argument());
    while (take(",") || take(";"));
    expect(")");
    return list;
  }
  Argument argument() {
    Argument result;
    const std::size_t begin = at_;
    result.key = word();
    if (result.key.empty() || !take_unless("=", "==")) {
      at_ = begin;
      result.key.clear();
    }
    result.value = result.key == "of" && take("(") ? list_of_indices() : expression();
    if (take("..")) result.upto.push_back(expression());
    if (!take(":")) return result;
    result.weight.push_back(expression());
    skip_spaces();
    if (at_ < text_.size() && starts_name(text_[at_])) {  // a field of a record
      result.key = word();
      if (take("=")) result.upto.push_back(expression());
    }
    return result;
  }
  Node list_of_indices() {
    Node node = operation(Node::Kind::call, "", at_, {});
    node.arguments = arguments();
    return node;
  }

  Node post() {
    Node node;
    node.kind = Node::Kind::call;
    skip_spaces();
    node.column = at_;
    node.text = word();
    if (node.text.empty()) error("a post-processing step is missing");
    if (take("(")) node.arguments = arguments();
    return node;
  }

  std::string_view text_;
  std::size_t at_ = 0, operator_at_ = 0;
  int nesting_ = 0;
};

void collect(const Node& node, std::vector<std::string>& names) {
  if (node.kind == Node::Kind::read && std::find(names.begin(), names.end(), node.text) == names.end())
    names.push_back(node.text);
  for (const Node& key : node.group) collect(key, names);
  for (const Node& position : node.along) collect(position, names);
  for (const Argument& argument : node.arguments) {
    collect(argument.value, names);
    for (const Node& part : argument.upto) collect(part, names);
    for (const Node& part : argument.weight) collect(part, names);
  }
}

}  // namespace

void fail(std::string_view text, const std::string& what, std::size_t column) {
  throw BadGenerator("'" + std::string(text) + "': " + what + " at column " + std::to_string(column + 1));
}

Generator parse(std::string_view text) {
  if (text.size() > kGeneratorMax)
    throw BadGenerator("'" + std::string(text.substr(0, 40)) + "…': longer than " + std::to_string(kGeneratorMax));
  return Parser(text).whole();
}

std::vector<std::string> tensors_read(const Generator& generator) {
  std::vector<std::string> names;
  for (const Let& let : generator.lets) collect(let.value, names);
  collect(generator.body, names);
  for (const Node& post : generator.posts) collect(post, names);
  return names;
}

}  // namespace kbench::inputs
