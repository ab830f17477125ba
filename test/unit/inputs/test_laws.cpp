#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "made.h"

using namespace kbench;
using namespace kbench::inputs_test;

namespace {

constexpr int kMany = 40'000;
const std::vector<std::string> kShape{std::to_string(kMany)};

std::vector<double> many(const std::string& gen, std::uint64_t seed = 1) {
  return made(gen, DType::f64, kShape, {{"D", 64}}, seed);
}

bool within(const std::vector<double>& x, double least, double most) {
  return std::all_of(x.begin(), x.end(), [&](double v) { return v >= least && v <= most; });
}

}  // namespace

TEST_CASE("laws have their moments and their ranges", "[laws]") {
  const double error = 5 / std::sqrt(kMany);
  CHECK(mean(many("normal(0,1)")) == Approx(0).margin(error));
  CHECK(variance(many("normal(0,1)")) == Approx(1).margin(2 * error));
  CHECK(mean(many("normal(3,0.1)")) == Approx(3).margin(0.1 * error));
  CHECK(variance(many("normal(0,1/sqrt(D))")) == Approx(1.0 / 64).margin(error / 32));
  CHECK(within(many("uniform(-2,3)"), -2, 3));
  CHECK(mean(many("uniform(-2,3)")) == Approx(0.5).margin(2 * error));
  CHECK(variance(many("uniform(-2,3)")) == Approx(25.0 / 12).margin(3 * error));
  CHECK(within(many("loguniform(0.01,1)"), 0.01, 1));
  CHECK(mean(many("log(loguniform(0.01,1))")) == Approx(std::log(0.1)).margin(2 * error));
  CHECK(mean(many("exponential(0)")) == Approx(1).margin(error));
  CHECK(within(many("exponential(0.5)"), 0.5, 60));
  CHECK(mean(many("bernoulli(0.3)")) == Approx(0.3).margin(error));
  CHECK(mean(many("sign")) == Approx(0).margin(error));
  CHECK(within(many("abs(sign)"), 1, 1));
  CHECK(within(many("pareto(2)"), 1, 1e9));
  CHECK(many("zeros") == std::vector<double>(kMany, 0));
}

TEST_CASE("int covers its range without its end", "[laws]") {
  const auto x = many("int(-2,3)");
  const std::set<double> distinct(x.begin(), x.end());
  CHECK(distinct == std::set<double>{-2, -1, 0, 1, 2});
  CHECK(within(many("int(5,6)"), 5, 5));
  CHECK(within(many("int(0,2^40)"), 0, std::ldexp(1, 40) - 1));
}

TEST_CASE("choice follows its weights", "[laws]") {
  const auto x = many("choice(1:0.5, 2:0.3, 7:0.2)");
  const auto share = [&](double v) { return static_cast<double>(std::count(x.begin(), x.end(), v)) / kMany; };
  CHECK(share(1) == Approx(0.5).margin(0.02));
  CHECK(share(2) == Approx(0.3).margin(0.02));
  CHECK(share(7) == Approx(0.2).margin(0.02));
  CHECK(mean(many("choice(0,10)")) == Approx(5).margin(0.2));
}

TEST_CASE("bits are raw, of any dtype", "[laws]") {
  const Made tensors(
      {{"a", DType::u64, {"4000"}, "bits"}, {"b", DType::bf16, {"4000"}, "bits"}, {"c", DType::u8, {"4000"}, "bits"}});
  for (const char* name : {"a", "b", "c"}) {
    std::vector<int> ones(8);
    const auto& bytes = tensors.bytes(name);
    for (const std::byte byte : bytes) {
      for (int bit = 0; bit < 8; ++bit)
        ones[static_cast<std::size_t>(bit)] += static_cast<int>(byte >> bit & std::byte{1});
    }
    for (const int count : ones) CHECK(count == Approx(static_cast<double>(bytes.size()) / 2).epsilon(0.06));
  }
}

TEST_CASE("draws differ between elements, laws, tensors and seeds, and repeat", "[laws]") {
  const auto a = many("normal(0,1)");
  CHECK(std::set<double>(a.begin(), a.end()).size() > kMany - 5);
  CHECK(a == many("normal(0,1)"));
  CHECK(a != many("normal(0,1)", 2));
  const auto two_sites = many("normal(0,1) - normal(0,1)");
  CHECK(variance(two_sites) == Approx(2).margin(0.1));
  const Made tensors({{"a", DType::f32, {"100"}, "normal(0,1)"}, {"b", DType::f32, {"100"}, "normal(0,1)"}});
  CHECK(tensors.values("a") != tensors.values("b"));
}

TEST_CASE("neighbours and far elements are uncorrelated", "[laws]") {
  const auto x = many("normal(0,1)");
  for (const std::size_t lag : {1u, 2u, 32u, 1024u}) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < x.size(); ++i) sum += x[i] * x[i + lag];
    CHECK(std::fabs(sum / kMany) < 5 / std::sqrt(kMany));
  }
}

TEST_CASE("an element beyond 2^32 has its own draw", "[laws]") {
  const Problem problem = problem_of({{"x", DType::f32, {"3", "2147483648"}, "normal(0,1) + i0"}});
  const auto program = inputs::compile(problem, problem.tensors[0], {}).program;
  const std::int64_t far = (std::int64_t{1} << 32) + 5;
  const double low = inputs::element_value(program, 1, 5, nullptr),
               high = inputs::element_value(program, 1, far, nullptr);
  CHECK(std::fabs(high - low - 2) > 1e-6);
  CHECK(std::fabs(high - 2) < 7);
}

TEST_CASE("a group shares one draw", "[laws]") {
  const auto x = made("normal(0,1)@(i0,i1//4)", DType::f64, {"3", "8"});
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 8; ++column) CHECK(x[8 * row + column] == x[8 * row + column / 4 * 4]);
  }
  CHECK(std::set<double>(x.begin(), x.end()).size() == 6);
  const auto rows = made("normal(0,1)@row", DType::f64, {"2", "3", "5"});
  CHECK(std::set<double>(rows.begin(), rows.end()).size() == 6);
  CHECK(rows[0] == rows[4]);
  const auto whole = made("exp(uniform(-1,1))@0", DType::f64, {"20"});  // @ reaches into a call
  CHECK(std::set<double>(whole.begin(), whole.end()).size() == 1);
}

TEST_CASE("shared draws are the same in two tensors", "[laws]") {
  const Made tensors({{"c", DType::f64, {"50"}, "cos(shared(angle; uniform(-pi,pi)))"},
                      {"s", DType::f64, {"50"}, "sin(shared(angle; uniform(-pi,pi)))"},
                      {"o", DType::f64, {"50"}, "sin(shared(other; uniform(-pi,pi)))"}});
  const auto c = tensors.values("c"), s = tensors.values("s"), o = tensors.values("o");
  for (std::size_t i = 0; i < 50; ++i) CHECK(c[i] * c[i] + s[i] * s[i] == Approx(1).epsilon(1e-14));
  CHECK(s != o);
}

TEST_CASE("expressions", "[laws]") {
  const Dims dims{{"H", 6}, {"D", 8}};
  const auto value = [&](const std::string& gen) { return made(gen, DType::f64, {"1"}, dims)[0]; };
  CHECK(value("1+2*3-4/8") == 6.5);
  CHECK(value("-2^2") == -4);
  CHECK(value("2^-1") == 0.5);
  CHECK(value("2^3^2") == 512);
  CHECK(value("-7//2") == -4);
  CHECK(value("-7%3") == 2);
  CHECK(value("H*D^-0.5") == Approx(6 / std::sqrt(8)));
  CHECK(value("where(H > 5 and D != 7, 1, 2)") == 1);
  CHECK(value("where(H >= 7 or D <= 7, 1, 2)") == 2);
  CHECK(value("pick(H//3; 10,20,30,40)") == 30);
  CHECK(value("pick(9; 10,20)") == 20);
  CHECK(value("clamp(99,-1,H)") == 6);
  CHECK(value("min(3,1,2) + max(3,9,2)") == 10);
  CHECK(value("round(2.5)+floor(-0.5)+ceil(0.2)+abs(-3)+sign(-9)") == 4);
  CHECK(value("sqrt(16)+exp(0)+log(1)+ln(1)+log1p(0)+sin(0)+cos(0)+tanh(0)") == 6);
  CHECK(value("const(pi/2*10000^(i0/(H*D//6-1)))") == Approx(1.5707963267948966));
  CHECK(value("let a=3, b=a*2: a+b") == 9);
  CHECK(value("inf") == inputs::infinity());
  CHECK(std::isnan(value("nan")));
  CHECK(value("1e-3*1.5") == Approx(1.5e-3).epsilon(0));
}

TEST_CASE("indices", "[laws]") {
  const auto x = made("100*i0 + 10*i1 + last + 0.001*linear + row*1000", DType::f64, {"2", "3", "4"});
  CHECK(x[23] == Approx(100 + 20 + 3 + 0.023 + 5000));
  CHECK(made("i0", DType::f64, {}) == std::vector<double>{0});
}

TEST_CASE("reads of other tensors", "[laws]") {
  const Made tensors({{"y", DType::f32, {"3", "2"}, "2*$x"},
                      {"x", DType::bf16, {"3", "2"}, "linear"},
                      {"z", DType::i32, {"2"}, "$x[2,i0] + $n[0]"},
                      {"n", DType::i64, {"1"}, "const(1000)"},
                      {"far", DType::f32, {"1"}, "where($n[5] == 0, 1, 2)"}});
  CHECK(tensors.values("y") == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(tensors.values("z") == std::vector<double>{1004, 1005});
  CHECK(tensors.values("far") == std::vector<double>{2});  // outside: NaN, no access
}

TEST_CASE("fp8 laws never give NaN", "[laws]") {
  for (const DType dtype : {DType::e4m3, DType::e5m2}) {
    const auto x = made("normal(0,1e6)", dtype, {"5000"});
    CHECK(std::none_of(x.begin(), x.end(), [](double v) { return std::isnan(v) || std::isinf(v); }));
  }
}

TEST_CASE("plain laws are made in blocks and keep their law", "[laws]") {
  constexpr int n = 200'003;  // no multiple of a block
  const auto draws = [](const std::string& gen, DType dtype) { return made(gen, dtype, {std::to_string(n)}); };
  const auto share = [](const std::vector<double>& x, auto&& condition) {
    return static_cast<double>(std::count_if(x.begin(), x.end(), condition)) / n;
  };
  const auto z = draws("normal(0,1)", DType::f32);
  CHECK(mean(z) == Approx(0).margin(0.01));
  CHECK(variance(z) == Approx(1).margin(0.015));
  CHECK(share(z, [](double x) { return std::fabs(x) > 3; }) == Approx(0.0027).margin(0.0005));
  CHECK(share(z, [](double x) { return x < -1; }) == Approx(0.15866).margin(0.004));
  CHECK(mean(draws("normal(5,0.5)", DType::bf16)) == Approx(5).margin(0.01));
  const auto whole = draws("int(-3,4)", DType::i32);
  for (int value = -3; value < 4; ++value)
    CHECK(share(whole, [&](double x) { return x == value; }) == Approx(1.0 / 7).margin(0.005));
  CHECK(within(whole, -3, 3));
  CHECK(mean(draws("bernoulli(1/8)", DType::u8)) == Approx(0.125).margin(0.005));
  const auto u = draws("uniform(-2,3)", DType::f32);
  CHECK(within(u, -2, 3));
  CHECK(mean(u) == Approx(0.5).margin(0.02));
  CHECK(within(draws("normal(0,1e38)", DType::bf16), -3.4e38, 3.4e38));  // beyond single precision: not plain
}

TEST_CASE("normal numbers in single precision are the quantile", "[laws]") {
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(inputs::mix64(i)) >> (i % 31);  // the tail too
    const double tail = ((bits & 0x7FFFFFFFu) + 0.5) / 4294967296.0;
    const double expected = -inputs::normal_quantile(tail);
    REQUIRE(static_cast<double>(inputs::normal_single(bits & 0x7FFFFFFFu)) ==
            Approx(expected).margin(3e-6).epsilon(expected < 5 ? 1e-5 : 1e-3));
    REQUIRE(inputs::normal_single(bits | 0x80000000u) == -inputs::normal_single(bits & 0x7FFFFFFFu));
  }
}

TEST_CASE("every bit of a tensor is as it was", "[laws]") {
  const auto hash = [](const std::string& gen, DType dtype) {
    const Made tensors({{"x", dtype, {"40", "100"}, gen}});
    return fingerprint(tensors.bytes("x").data(), tensors.bytes("x").size());
  };
  CHECK(hash("normal(0,1)", DType::f32) == 0x45203ba762f181c0);
  CHECK(hash("normal(0,1)*exp(uniform(-2,2))@(i0,i1//16)", DType::bf16) == 0xb37093663773c579);
  CHECK(hash("perm(4000)", DType::i32) == 0x6632c3cefa14cded);
  CHECK(hash("normal(0,1) |softmax(last)", DType::f32) == 0x81137084ca4e0eb5);
}

TEST_CASE("on several GPUs a shard is another on each, what is replicated the same, and each reads its own GPU's",
          "[laws]") {
  Problem problem = problem_of({{"x", DType::f32, {"40"}, "normal(0,1)"},
                                {"same", DType::f32, {"40"}, "normal(0,1)"},
                                {"twice", DType::f32, {"40"}, "2*$x[i0]"},
                                {"both", DType::f32, {"40"}, "2*$same[i0]"}});
  problem.gpus = 2;
  for (Tensor& tensor : problem.tensors)
    tensor.placement = tensor.name == "same" || tensor.name == "both" ? Placement::replicated : Placement::shard;
  problem = spread(problem);
  // Made as the devices do, by place and not by name.
  std::vector<std::vector<float>> made(problem.tensors.size(), std::vector<float>(40));
  for (const std::size_t i : inputs::order(problem)) {
    const Tensor& tensor = problem.tensors[i];
    const auto compiled = inputs::compile(problem, tensor, {});
    std::vector<const void*> reads;
    for (const std::string& name : compiled.reads)
      reads.push_back(made[static_cast<std::size_t>(problem.find(name, tensor.gpu) - problem.tensors.data())].data());
    for (std::int64_t unit = 0; unit < inputs::generation_units(compiled.program); ++unit)
      inputs::generate_unit(compiled.program, 5, unit, reads.data(), made[i].data());
  }
  CHECK(made[0] != made[1]);
  CHECK(made[2] == made[3]);
  CHECK(made[0] != made[2]);
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(made[4][i] == 2 * made[0][i]);
    CHECK(made[5][i] == 2 * made[1][i]);
    CHECK(made[6][i] == made[7][i]);
  }
  problem.tensors[6].gen = problem.tensors[7].gen = "2*$x[i0]";
  CHECK_THROWS_WITH(inputs::compile(problem, problem.tensors[6], {}),
                    Catch::Contains("'x' is another on each GPU, and this tensor the same on all"));
}
