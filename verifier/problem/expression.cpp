#include <cctype>
#include <limits>

#include "verifier/problem/problem.h"

namespace kbench {
namespace {

constexpr int kDepthMax = 64;  // nested parentheses and signs

using Int = std::int64_t;

// Recursive descent; each rule returns its value. Binding, loosest first: >>, then + -, then * / // %, then the sign.
class Evaluation {
 public:
  Evaluation(std::string_view text, const Dims& dims) : text_(text), dims_(dims) {}

  Int whole() {
    const Int value = shift();
    skip_spaces();
    if (at_ != text_.size()) fail("unexpected '" + std::string(1, text_[at_]) + "'", at_);
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::size_t at) const {
    throw BadExpression("'" + std::string(text_) + "': " + what + " at column " + std::to_string(at + 1));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    operator_at_ = at_;
    at_ += token.size();
    return true;
  }

  Int checked(bool overflowed, Int value, std::size_t at) const {
    if (overflowed) fail("overflow of 64 bits", at);
    return value;
  }

  Int shift() {
    Int value = sum();
    while (take(">>")) {
      const std::size_t at = operator_at_;
      const Int count = sum();
      if (count < 0 || count > 63) fail("shift by " + std::to_string(count), at);
      value >>= count;
    }
    return value;
  }

  Int sum() {
    Int value = product();
    for (;;) {
      const bool plus = take("+");
      if (!plus && !take("-")) return value;
      const std::size_t at = operator_at_;
      const Int right = product();
      Int result = 0;
      const bool overflowed =
          plus ? __builtin_add_overflow(value, right, &result) : __builtin_sub_overflow(value, right, &result);
      value = checked(overflowed, result, at);
    }
  }

  Int product() {
    Int value = signed_primary();
    for (;;) {
      if (take("*")) {
        const std::size_t at = operator_at_;
        Int result = 0;
        const bool overflowed = __builtin_mul_overflow(value, signed_primary(), &result);
        value = checked(overflowed, result, at);
      } else if (take("//")) {
        value = divide(value, operator_at_, '#');
      } else if (take("/")) {
        value = divide(value, operator_at_, '/');
      } else if (take("%")) {
        value = divide(value, operator_at_, '%');
      } else {
        return value;
      }
    }
  }

  Int divide(Int left, std::size_t at, char kind) {
    const Int right = signed_primary();
    if (right == 0) fail("division by zero", at);
    if (right == -1) return kind == '%' ? 0 : checked(left == std::numeric_limits<Int>::min(), left, at) * -1;
    const Int rest = left % right;
    if (kind == '/' && rest != 0) {
      fail(std::to_string(left) + " is no multiple of " + std::to_string(right) + " (use // to round down)", at);
    }
    const bool below = rest != 0 && (rest < 0) != (right < 0);  // truncation went towards zero, floor goes down
    if (kind == '%') return below ? rest + right : rest;
    return left / right - (below ? 1 : 0);
  }

  Int signed_primary() {
    if (!take("-")) return primary();
    const std::size_t at = operator_at_;
    deepen(at);
    const Int value = signed_primary();
    --depth_;
    return checked(value == std::numeric_limits<Int>::min(), value, at) * -1;
  }

  Int primary() {
    skip_spaces();
    const std::size_t at = at_;
    if (at == text_.size()) fail("a value is missing", at);
    if (std::isdigit(static_cast<unsigned char>(text_[at]))) return number();
    if (take("(")) {
      deepen(at);
      const Int value = shift();
      --depth_;
      expect(")");
      return value;
    }
    const std::string name = word();
    if (name.empty()) fail("unexpected '" + std::string(1, text_[at]) + "'", at);
    if ((name == "min" || name == "max") && take("(")) {
      deepen(at);
      const Int a = shift();
      expect(",");
      const Int b = shift();
      --depth_;
      expect(")");
      return name == "min" ? std::min(a, b) : std::max(a, b);
    }
    const auto found = dims_.find(name);
    if (found == dims_.end()) fail("unknown name '" + name + "'", at);
    return found->second;
  }

  Int number() {
    const std::size_t at = at_;
    Int value = 0;
    bool overflowed = false;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      overflowed |= __builtin_mul_overflow(value, Int{10}, &value);
      overflowed |= __builtin_add_overflow(value, Int{text_[at_] - '0'}, &value);
      ++at_;
    }
    return checked(overflowed, value, at);
  }

  std::string word() {
    const std::size_t at = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(at, at_ - at));
  }

  void expect(std::string_view token) {
    if (!take(token)) fail("'" + std::string(token) + "' is missing", at_);
  }

  void deepen(std::size_t at) {
    if (++depth_ > kDepthMax) fail("nested deeper than " + std::to_string(kDepthMax), at);
  }

  std::string_view text_;
  const Dims& dims_;
  std::size_t at_ = 0, operator_at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::int64_t evaluate(std::string_view expression, const Dims& dims) {
  if (expression.size() > kExpressionMax) {
    throw BadExpression("'" + std::string(expression.substr(0, 40)) + "…': longer than " +
                        std::to_string(kExpressionMax));
  }
  return Evaluation(expression, dims).whole();
}

}  // namespace kbench
