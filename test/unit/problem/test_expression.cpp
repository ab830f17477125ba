#include <catch2/catch.hpp>
#include <limits>

#include "verifier/problem/problem.h"

using kbench::BadExpression;
using kbench::Dims;
using kbench::evaluate;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();
const Dims kDims{{"M", 7}, {"big", kMost}, {"least", kLeast}, {"min", 5}, {"N_2", 3'000'000'000}};

void refuses(const std::string& expression, const std::string& what) {
  INFO(expression);
  CHECK_THROWS_WITH(evaluate(expression, kDims), Catch::Contains(what) && Catch::Contains("'" + expression + "'"));
}

}  // namespace

TEST_CASE("an expression has the usual value", "[expression]") {
  const std::pair<const char*, std::int64_t> cases[] = {{"0", 0},
                                                        {" 12 ", 12},
                                                        {"M", 7},
                                                        {"M*M+1", 50},
                                                        {"1+2*3", 7},
                                                        {"(1+2)*3", 9},
                                                        {"10-2-3", 5},
                                                        {"2*-3", -6},
                                                        {"--4", 4},
                                                        {"-7//2", -4},
                                                        {"7//-2", -4},
                                                        {"7//2", 3},
                                                        {"-7%3", 2},
                                                        {"7%-3", -2},
                                                        {"6%3", 0},
                                                        {"12/4/3", 1},
                                                        {"100>>2", 25},
                                                        {"1+7>>1", 4},
                                                        {"-9>>1", -5},
                                                        {"min(M,3)", 3},
                                                        {"max(min(1,2),M//2)", 3},
                                                        {"min+1", 6},
                                                        {"N_2*3", 9'000'000'000},
                                                        {"big", kMost},
                                                        {"least+0", kLeast},
                                                        {"9223372036854775807", kMost},
                                                        {"big//-1", -kMost},
                                                        {"least%-1", 0}};
  for (const auto& [expression, value] : cases) {
    INFO(expression);
    CHECK(evaluate(expression, kDims) == value);
  }
}

TEST_CASE("what has no value is refused with the text and the place", "[expression]") {
  refuses("M+Q", "unknown name 'Q' at column 3");
  refuses("M//0", "division by zero at column 2");
  refuses("1%(M-7)", "division by zero");
  refuses("M/2", "7 is no multiple of 2 (use // to round down) at column 2");
  refuses("big+1", "overflow of 64 bits at column 4");
  refuses("least-1", "overflow");
  refuses("big*2", "overflow");
  refuses("-least", "overflow");
  refuses("least//-1", "overflow");
  refuses("least/-1", "overflow");
  refuses("9223372036854775808", "overflow of 64 bits at column 1");
  refuses("", "a value is missing at column 1");
  refuses("M+", "a value is missing at column 3");
  refuses("(M", "')' is missing at column 3");
  refuses("M)", "unexpected ')' at column 2");
  refuses("min(M)", "',' is missing at column 6");
  refuses("M M", "unexpected 'M'");
  refuses("M^2", "unexpected '^' at column 2");
  refuses("1.5", "unexpected '.'");
  refuses("1>>64", "shift by 64");
  refuses("1>>-1", "shift by -1");
}

TEST_CASE("length and depth are bounded", "[expression]") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" + std::string(static_cast<std::size_t>(depth), ')');
  };
  CHECK(evaluate(nested(64), {}) == 1);
  CHECK_THROWS_WITH(evaluate(nested(65), {}), Catch::Contains("nested deeper than 64"));
  CHECK_THROWS_WITH(evaluate(std::string(65, '-') + "1", {}), Catch::Contains("nested deeper than 64"));
  CHECK(evaluate(std::string(kbench::kExpressionMax - 1, ' ') + "1", {}) == 1);
  CHECK_THROWS_AS(evaluate(std::string(kbench::kExpressionMax, ' ') + "1", {}), BadExpression);
}
