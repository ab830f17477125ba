#include "verifier/compare/rule_text.h"

#include <cmath>
#include <cstdlib>
#include <map>

namespace kbench::compare {
namespace {

constexpr std::string_view kAdmitted =
    "exact, near(scale=row|tensor|outer, precision=<dtype>), elem(max, floor), abs(tol), tight(tol), "
    "codes(value|int4|uint4|uint2; flips<=share), rows(rule; share>=share), delta(precision=<dtype>, ulps=n), "
    "finite(rule)";
constexpr double kUlpsUntold = 4;  // delta: what the format of the tensor cannot hold is no error

struct Parts {
  std::string name;
  std::vector<std::string> arguments;  // split at , and ; outside inner parentheses; blanks trimmed
};

class Reader {
 public:
  explicit Reader(const Tensor& tensor) : tensor_(tensor) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw BadRule("tensor '" + tensor_.name + "': rule '" + tensor_.rule + "': " + what +
                  "; admitted: " + std::string(kAdmitted));
  }

  RuleText read(const std::string& text) {
    const Parts parts = split(text);
    if (parts.name == "exact") return none(parts), RuleText{};
    if (parts.name == "near") return near(parts);
    if (parts.name == "elem") return bounded(parts, true, true);
    if (parts.name == "abs") return bounded(parts, false, true);
    if (parts.name == "tight") return bounded(parts, true, false);
    if (parts.name == "codes") return codes(parts);
    if (parts.name == "delta") return delta(parts);
    if (parts.name == "rows") return rows(parts);
    if (parts.name == "finite") {
      if (parts.arguments.size() != 1) refuse("finite takes a rule");
      return nested(parts.arguments[0]);  // infinities are equal everywhere; scales are of the finite elements
    }
    refuse("unknown rule '" + parts.name + "'");
  }

 private:
  static std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
    return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
  }

  Parts split(const std::string& text) const {
    const std::size_t open = text.find('(');
    Parts parts{trimmed(text.substr(0, open)), {}};
    if (open == std::string::npos) return parts;
    if (text.back() != ')') refuse("')' is missing at the end of '" + text + "'");
    std::string argument;
    int depth = 0;
    for (std::size_t i = open + 1; i + 1 < text.size(); ++i) {
      const char c = text[i];
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (depth < 0) refuse("unmatched ')' at column " + std::to_string(i + 1));
      if (depth == 0 && (c == ',' || c == ';')) {
        parts.arguments.push_back(trimmed(argument));
        argument.clear();
      } else {
        argument += c;
      }
    }
    if (depth != 0) refuse("unmatched '('");
    parts.arguments.push_back(trimmed(argument));
    return parts;
  }

  RuleText nested(const std::string& text) {
    if (++depth_ > 4) refuse("nested too deep");
    return read(text);
  }

  void none(const Parts& parts) const {
    if (!parts.arguments.empty()) refuse(parts.name + " takes no arguments");
  }

  double number(const std::string& text) const {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0)
      refuse("'" + text + "' is no number of at least 0");
    return value;
  }
  double share(const std::string& text) const {
    const double value = number(text);
    if (value > 1) refuse("'" + text + "' is no share: 0 to 1");
    return value;
  }
  // "key=value" or "key>=value" …; empty where the key is another.
  static std::string value_of(const std::string& argument, const std::string& key) {
    return argument.starts_with(key) ? trimmed(argument.substr(key.size())) : "";
  }

  void need_numbers(const std::string& name) const {
    if (tensor_.dtype == DType::e8m0 || tensor_.dtype == DType::e2m1x2)
      refuse(name + " is not for " + std::string(name_of(tensor_.dtype)) + ": use exact or codes");
  }

  DType precision(const std::string& name) const {
    const auto dtype = dtype_named(name);
    if (!dtype || unit_roundoff(*dtype) == 0) refuse("'" + name + "' is no floating-point format");
    return *dtype;
  }
  void set_precision(RuleText& text) const {
    if (!text.precision) text.precision = precision(std::string(name_of(tensor_.dtype)));
    text.max = tensor_.tolerance.max;
    text.rms = tensor_.tolerance.rms;
    if (text.max <= 0) refuse("needs a tolerance: tolerance.max of the tensor");
  }

  RuleText near(const Parts& parts) const {
    need_numbers("near");
    RuleText text;
    text.kind = RuleKind::near;
    for (const std::string& argument : parts.arguments) {
      const std::string scale = value_of(argument, "scale=");
      if (const std::string name = value_of(argument, "precision="); !name.empty())
        text.precision = precision(name);
      else if (scale == "row")
        text.scale = ScaleKind::row;
      else if (scale == "tensor")
        text.scale = ScaleKind::tensor;
      else if (scale == "outer")
        text.scale = ScaleKind::outer;
      else
        refuse("'" + argument + "' is not known to near");
    }
    set_precision(text);
    return text;
  }

  // elem(max, floor), abs(floor), tight(max); without numbers tolerance.max is the first of them.
  RuleText bounded(const Parts& parts, bool relative, bool absolute) const {
    need_numbers(parts.name);
    const std::size_t most = relative && absolute ? 2 : 1;
    if (parts.arguments.size() > most) refuse(parts.name + " takes at most " + std::to_string(most) + " numbers");
    const double first = parts.arguments.empty() ? tensor_.tolerance.max : number(parts.arguments[0]);
    if (first <= 0) refuse("needs a tolerance: in the text, or tolerance.max of the tensor");
    RuleText text;
    text.kind = RuleKind::bounded;
    text.max = relative ? first : 0;
    text.floor = relative ? 0 : first;
    if (parts.arguments.size() == 2) {
      const std::string floor = value_of(parts.arguments[1], "floor=");
      text.floor = number(floor.empty() ? parts.arguments[1] : floor);
    }
    return text;
  }

  RuleText codes(const Parts& parts) const {
    static const std::map<std::string, Packing, std::less<>> kPackings{
        {"value", Packing::value}, {"int4", Packing::int4}, {"uint4", Packing::uint4}, {"uint2", Packing::uint2}};
    if (parts.arguments.size() != 2) refuse("codes takes what the elements hold, and flips<=share");
    const auto packing = kPackings.find(parts.arguments[0]);
    if (packing == kPackings.end()) refuse("'" + parts.arguments[0] + "' is not known to codes");
    const bool integers = unit_roundoff(tensor_.dtype) == 0 && tensor_.dtype != DType::e8m0;
    if (packing->second != Packing::value && !integers) refuse(parts.arguments[0] + " is for integer tensors");
    RuleText text;
    text.kind = RuleKind::codes;
    text.packing = packing->second;
    text.flips = share(value_of(parts.arguments[1], "flips<="));
    return text;
  }

  RuleText delta(const Parts& parts) const {
    need_numbers("delta");
    if (tensor_.role != Role::inout) refuse("delta is for in-out tensors");
    RuleText text;
    text.kind = RuleKind::delta;
    text.floor = kUlpsUntold;
    for (const std::string& argument : parts.arguments) {
      const std::string ulps = value_of(argument, "ulps=");
      if (const std::string name = value_of(argument, "precision="); !name.empty())
        text.precision = precision(name);
      else if (!ulps.empty())
        text.floor = number(ulps);
      else
        refuse("'" + argument + "' is not known to delta");
    }
    set_precision(text);
    return text;
  }

  RuleText rows(const Parts& parts) {
    if (parts.arguments.size() != 2) refuse("rows takes a rule and share>=share");
    RuleText text = parts.arguments[0] == "equal" ? RuleText{} : nested(parts.arguments[0]);
    if (text.share || text.kind == RuleKind::codes || text.kind == RuleKind::delta)
      refuse("rows is of exact, near, elem, abs or tight");
    text.share = share(value_of(parts.arguments[1], "share>="));
    return text;
  }

  const Tensor& tensor_;
  int depth_ = 0;
};

}  // namespace

RuleText parse_text(const Tensor& tensor) {
  if (tensor.rule.size() > kExpressionMax)
    throw BadRule("tensor '" + tensor.name + "': the rule is longer than " + std::to_string(kExpressionMax));
  return Reader(tensor).read(tensor.rule);
}

}  // namespace kbench::compare
