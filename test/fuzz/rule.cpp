// A comparison rule. The first byte is the dtype.
#include "verifier/compare/rule_text.h"

#include <cmath>

#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  Tensor tensor{};
  tensor.name = "y";
  tensor.dtype = static_cast<DType>(input.byte() % 15);
  tensor.tolerance = {2, 1};
  tensor.rule = input.rest();
  try {
    const compare::RuleText rule = compare::parse_text(tensor);
    for (const double value : {rule.max, rule.rms, rule.floor, rule.flips, rule.share.value_or(0)})
      require(std::isfinite(value) && value >= 0, "bounds that are numbers");
    require(rule.flips <= 1 && rule.share.value_or(0) <= 1, "shares");
  } catch (const compare::BadRule&) {
  }
  return 0;
}
