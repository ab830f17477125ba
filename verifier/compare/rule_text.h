// A comparison rule as read from its text. Inner header of compare/.
#pragma once

#include <optional>

#include "verifier/compare/compare.h"
#include "verifier/compare/passes.h"

namespace kbench::compare {

enum class RuleKind : std::uint8_t { exact, near, bounded, codes, delta };

struct RuleText {
  RuleKind kind = RuleKind::exact;
  ScaleKind scale = ScaleKind::row;  // near
  std::optional<DType> precision;    // near, delta: whose unit roundoff counts
  double max = 0, rms = 0;           // near, delta: multiples of u; bounded: relative part
  double floor = 0;                  // bounded: absolute part; delta: ulps
  Packing packing = Packing::value;  // codes
  double flips = 0;                  // codes: share
  std::optional<double> share;       // rows: of the rows that must satisfy the rule
};

RuleText parse_text(const Tensor& tensor);  // throws BadRule

}  // namespace kbench::compare
