#include <catch2/catch.hpp>

#include "made.h"
#include "verifier/inputs/syntax.h"

using namespace kbench;
using namespace kbench::inputs_test;

namespace {

const std::vector<std::string> kShape{"4", "6"};

void refuses(const std::string& gen, const std::string& what) {
  INFO(gen);
  CHECK_THROWS_AS(made(gen, DType::f32, kShape, {{"N", 24}}), inputs::BadGenerator);
  CHECK_THROWS_WITH(made(gen, DType::f32, kShape, {{"N", 24}}),
                    Catch::Contains("tensor 'x': ") && Catch::Contains(what));
}
void refuses_at(const std::string& gen, const std::string& what) { refuses(gen, "'" + gen + "': " + what); }

}  // namespace

TEST_CASE("what is no generator is refused with the text and the place", "[text]") {
  // order() reads the texts first, so these faults come from there or from compile; both name the text.
  const auto problem = problem_of({{"x", DType::f32, kShape, "normal(0,"}});
  CHECK_THROWS_WITH(inputs::compile(problem, problem.tensors[0], {}),
                    "tensor 'x': 'normal(0,': a value is missing at column 10");
  for (const auto& [gen, what] : std::map<std::string, std::string>{{"", "a value is missing at column 1"},
                                                                    {"normal(0,1", "')' is missing at column 11"},
                                                                    {"normal(0,1))", "unexpected ')' at column 12"},
                                                                    {"1 +", "a value is missing at column 4"},
                                                                    {"&", "unexpected '&' at column 1"},
                                                                    {"$", "a tensor's name is missing"},
                                                                    {"normal(0,1)@i0@i1", "a second @"},
                                                                    {"let a: 1", "'=' is missing at column 6"},
                                                                    {"let =1: 1", "a name is missing"},
                                                                    {"1 |", "a post-processing step is missing"},
                                                                    {"1e999", "'1e999' is too large"}}) {
    INFO(gen);
    CHECK_THROWS_WITH(inputs::parse(gen), Catch::Contains("'" + gen + "': ") && Catch::Contains(what));
  }
}

TEST_CASE("what does not mean anything is refused", "[text]") {
  refuses_at("gauss(0,1)", "unknown function 'gauss' at column 1");
  refuses_at("1+Q", "unknown name 'Q' at column 3");
  refuses_at("normal(0)", "normal takes 2 arguments, not 1 at column 1");
  refuses_at("i2", "the tensor has no index i2 at column 1");
  refuses("$w", "no tensor 'w'");
  refuses_at("int(3,3)", "int(a,b) excludes b");
  refuses_at("choice(1:0.5,2:0.4)", "the weights of choice sum to 0.9");
  refuses_at("choice(1:i0,2:0.4)", "must be known at the shape");
  refuses_at("perm(23)", "perm has 23 entries for 24 elements");
  refuses_at("perm(N)@i1", "perm needs its position here");
  refuses_at("perm(N/5)", "must be a whole number, not 4.8");
  refuses_at("subset(6,5)@row", "subset of 6 out of fewer");
  refuses_at("subset(6,9,odd)@row", "subset knows sorted and pad=-1");
  refuses_at("multiset(1:3,0:4)@row", "multiset has 7 entries for 6 elements");
  refuses_at("multiset(1:30,0:rest)", "more entries than the 24 elements");
  refuses_at("multiset(1,2)", "an entry of a multiset is value:count");
  refuses_at("offsets(6, 10, cuts)", "offsets of 6 need a last axis of 7");
  refuses_at("offsets(5, 4, cuts)", "cuts need 1 <= n <= total");
  refuses_at("offsets(5, 10, random)", "offsets are by cuts");
  refuses_at("sizes(6, 10, weights=1, min=2)", "no 6 sizes within min and max sum to 10");
  refuses_at("sizes(6, 10)", "weights=.. is missing");
  refuses_at("sizes(5, 10, weights=1)", "sizes need a last axis of 5");
  refuses_at("pages(3,4,5)", "pages are of $lengths or diff($offsets)");
  refuses_at("top(3; i0)", "top of 3 for more elements");
  refuses_at("bits+1", "bits stands alone");
  refuses_at("bits |clip(3)", "nothing can follow bits");
  refuses_at("_", "_ stands for nothing here");
  refuses_at("p[1]", "'p' is no let-bound name");
  refuses_at("let p=perm(8): p[0]+p", "'p' needs an index: p[..]");
  refuses_at("1 |softmax(i7)", "an axis is needed");
  refuses_at("1 |normalise", "unknown step 'normalise'");
  refuses_at("1 |fill_exact(25, 0)", "fill_exact of 25 out of 24");
  refuses_at("1 |add_at(i0, 1)", "add_at takes subset(m, n) or $ids of the row");
  refuses_at("record(0:2 f16 = 1)", "record is for tensors of u8");
  refuses("1 |softmax(last) |sort(last)", "a second step that needs whole rows");
  refuses("normal(0,1)@normal(0,1)", "a draw inside @(..)");
  refuses("let a=1, a=2: a", "'a' is bound twice");
}

TEST_CASE("texts are bounded", "[text]") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" + std::string(static_cast<std::size_t>(depth), ')');
  };
  CHECK_NOTHROW(made(nested(39), DType::f32, {"1"}));
  CHECK_THROWS_WITH(made(nested(41), DType::f32, {"1"}), Catch::Contains("nested deeper than 40"));
  CHECK_NOTHROW(inputs::parse(std::string(1999, ' ') + "1"));
  CHECK_THROWS_WITH(inputs::parse(std::string(2000, ' ') + "1"), Catch::Contains("longer than 2000"));

  // One instruction each: a draw or an addition.
  const auto sum = [](int draws) {
    std::string text = "uniform(0,1)";
    for (int i = 1; i < draws; ++i) text += "+bernoulli(0.5)";
    return text;
  };
  CHECK_NOTHROW(made(sum(20), DType::f32, {"1"}));
  CHECK_THROWS_WITH(made(sum(60), DType::f32, {"1"}), Catch::Contains("more than 128 instructions"));
  std::string deep = "i0";
  for (int i = 0; i < 15; ++i) deep = "i0+(" + deep + ")";
  CHECK_NOTHROW(made(deep, DType::f32, {"1"}));
  CHECK_THROWS_WITH(made("i0+(" + deep + ")", DType::f32, {"1"}), Catch::Contains("more than 16 values at once"));
  std::string lets = "let a0=i0";
  for (int i = 1; i < 8; ++i) lets += ", a" + std::to_string(i) + "=i0";
  CHECK_NOTHROW(made(lets + ": a0", DType::f32, {"1"}));
  CHECK_THROWS_WITH(made(lets + ", b=i0: a0", DType::f32, {"1"}), Catch::Contains("more than 8 values kept at once"));
}

TEST_CASE("tensors that others read come first, circles are refused", "[text]") {
  const auto chain = problem_of(
      {{"a", DType::f32, {"1"}, "$c"}, {"b", DType::f32, {"1"}, "$a+$c"}, {"c", DType::f32, {"1"}, "zeros"}});
  CHECK(inputs::order(chain) == std::vector<std::size_t>{2, 0, 1});
  const auto circle = problem_of({{"a", DType::f32, {"1"}, "$b"}, {"b", DType::f32, {"1"}, "$a"}});
  CHECK_THROWS_WITH(inputs::order(circle), Catch::Contains("depends on itself"));
  const auto missing = problem_of({{"a", DType::f32, {"1"}, "$z"}});
  CHECK_THROWS_WITH(inputs::order(missing), "tensor 'a': no tensor 'z'");
  auto output = chain;
  output.tensors[2].role = Role::output;
  CHECK_THROWS_WITH(inputs::compile(output, output.tensors[0], {}), Catch::Contains("'c' is an output"));
  const auto itself = problem_of({{"a", DType::f32, {"1"}, "$a"}});
  CHECK_THROWS_WITH(inputs::compile(itself, itself.tensors[0], {}), Catch::Contains("a tensor cannot read itself"));
}

TEST_CASE("the shape of what is read must fit", "[text]") {
  const auto problem = problem_of(
      {{"a", DType::f32, {"4"}, "$b"}, {"b", DType::f32, {"4", "2"}, "zeros"}, {"c", DType::f32, {"4"}, "$b[i0]"}});
  CHECK_THROWS_WITH(inputs::compile(problem, problem.tensors[0], {}),
                    Catch::Contains("'b' has another shape: give its indices at column 1"));
  CHECK_THROWS_WITH(inputs::compile(problem, problem.tensors[2], {}), Catch::Contains("'b' has 2 indices"));
}
