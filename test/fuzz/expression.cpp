// Arithmetic over dims.
#include "test/fuzz/fuzz.h"
#include "verifier/problem/problem.h"

using namespace kbench;
using namespace kbench::fuzz;

KBENCH_FUZZ_TARGET(data, size) {
  static const Dims dims = {{"N", 24}, {"M", 4}, {"big", std::int64_t{1} << 62}, {"K", 0}, {"neg", -7}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::int64_t value = evaluate(text, dims);
    require(evaluate("(" + std::string(text) + ")", dims) == value, "parentheses change nothing");
  } catch (const BadExpression&) {
  }
  return 0;
}
