#include <catch2/catch.hpp>

#include "verifier/compare/rule_text.h"

using namespace kbench;
using namespace kbench::compare;

namespace {

Tensor tensor_of(const std::string& rule, DType dtype = DType::bf16, Role role = Role::inout) {
  return {"y", dtype, {"M"}, role, "zeros", rule, {8, 3}};
}

void refuses(const std::string& rule, const std::string& what, DType dtype = DType::bf16, Role role = Role::inout) {
  INFO(rule);
  CHECK_THROWS_WITH(parse(tensor_of(rule, dtype, role)), Catch::Contains("tensor 'y': rule '" + rule + "': " + what) &&
                                                             Catch::Contains("admitted: exact, near("));
}

}  // namespace

TEST_CASE("rules are read with their numbers", "[rule]") {
  const RuleText near = parse_text(tensor_of("near(scale=tensor, precision=f32)"));
  CHECK(near.kind == RuleKind::near);
  CHECK(near.scale == ScaleKind::tensor);
  CHECK(near.precision == DType::f32);
  CHECK(near.max == 8);
  CHECK(near.rms == 3);
  CHECK(parse_text(tensor_of("near")).precision == DType::bf16);
  CHECK(parse_text(tensor_of("near(scale=outer)")).scale == ScaleKind::outer);

  const RuleText elem = parse_text(tensor_of("elem(1e-4, floor=1e-7)"));
  CHECK(elem.max == 1e-4);
  CHECK(elem.floor == 1e-7);
  CHECK(parse_text(tensor_of("elem")).max == 8);
  CHECK(parse_text(tensor_of("abs")).floor == 8);
  CHECK(parse_text(tensor_of("abs")).max == 0);
  CHECK(parse_text(tensor_of("tight(1e-5)")).max == 1e-5);

  const RuleText codes = parse_text(tensor_of("codes(uint4; flips<=0.002)", DType::u8));
  CHECK(codes.packing == Packing::uint4);
  CHECK(codes.flips == 0.002);

  const RuleText rows = parse_text(tensor_of("rows(near(scale=row); share>=0.99)"));
  CHECK(rows.kind == RuleKind::near);
  CHECK(rows.share == 0.99);
  CHECK(parse_text(tensor_of("rows(equal; share>=0.995)")).kind == RuleKind::exact);
  CHECK(parse_text(tensor_of("delta")).floor == 4);
  CHECK(parse_text(tensor_of("delta(precision=f32, ulps=1)")).floor == 1);
  CHECK(parse_text(tensor_of("finite( abs(1e-4) )")).floor == 1e-4);
  CHECK(parse_text(tensor_of("exact", DType::e8m0)).kind == RuleKind::exact);
}

TEST_CASE("what is no rule is refused with what is admitted", "[rule]") {
  refuses("", "unknown rule ''");
  refuses("close", "unknown rule 'close'");
  refuses("exact(1)", "exact takes no arguments");
  refuses("near(scale=column)", "'scale=column' is not known to near");
  refuses("near(precision=i32)", "'i32' is no floating-point format");
  refuses("near", "'i32' is no floating-point format", DType::i32);
  refuses("near", "near is not for e2m1x2: use exact or codes", DType::e2m1x2);
  refuses("elem(1,2,3)", "elem takes at most 2 numbers");
  refuses("elem(x)", "'x' is no number of at least 0");
  refuses("abs(-1)", "'-1' is no number of at least 0");
  refuses("abs(0)", "needs a tolerance");
  refuses("tight(1, 2)", "tight takes at most 1 numbers");
  refuses("codes(value)", "codes takes what the elements hold, and flips<=share");
  refuses("codes(Q*S; flips<=0.1)", "'Q*S' is not known to codes");
  refuses("codes(uint4; flips<=0.1)", "uint4 is for integer tensors");
  refuses("codes(value; flips<=2)", "'2' is no share: 0 to 1");
  refuses("rows(equal)", "rows takes a rule and share>=share");
  refuses("rows(equal; q=1)", "'' is no number");
  refuses("rows(rows(equal; share>=0.5); share>=0.5)", "rows is of exact, near, elem, abs or tight");
  refuses("rows(delta; share>=0.5)", "rows is of exact, near, elem, abs or tight");
  refuses("delta", "delta is for in-out tensors", DType::f32, Role::output);
  refuses("delta(x=1)", "'x=1' is not known to delta");
  refuses("finite", "finite takes a rule");
  refuses("finite(finite(finite(finite(finite(exact)))))", "nested too deep");
  refuses("near(scale=row", "')' is missing at the end");
  refuses("near(scale=row))", "unmatched ')'");
  refuses("near((scale=row)", "unmatched '('");
}

TEST_CASE("a rule that needs a tolerance says so", "[rule]") {
  for (const char* rule : {"near", "delta", "elem", "abs", "tight", "rows(near; share>=0.9)"}) {
    Tensor tensor = tensor_of(rule, DType::f32);
    tensor.tolerance = {};
    CHECK_THROWS_WITH(parse(tensor), Catch::Contains("needs a tolerance"));
  }
}
