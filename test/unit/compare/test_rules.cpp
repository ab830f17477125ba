#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "host_device.h"
#include "kbench/types.h"

using namespace kbench;
using namespace kbench::compare_test;
using Catch::Contains;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normals(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> law(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = law(random);
  return values;
}

std::vector<kb::bf16> rounded(const std::vector<float>& values) {
  std::vector<kb::bf16> result;
  for (const float value : values) result.emplace_back(value);
  return result;
}

Case near_case(const std::string& rule = "near(scale=row)") { return {DType::f32, {"7", "37"}, rule, {4, 2}}; }

}  // namespace

TEST_CASE("equal tensors are equal under every rule", "[compare]") {
  const auto r = normals(7 * 37);
  for (const char* rule : {"exact", "near(scale=row)", "near(scale=tensor, precision=bf16)", "near(scale=outer)",
                           "elem(1e-4)", "elem(1e-4, floor=1e-6)", "abs", "tight(1e-5)", "codes(value; flips<=0)",
                           "rows(equal; share>=1)", "rows(near; share>=0.9)", "finite(near(scale=row))"}) {
    INFO(rule);
    const auto outcome = near_case(rule).judge(r, r);
    CHECK(outcome.equal);
    CHECK(outcome.reason.empty());
    CHECK(outcome.wrong == 0);
    CHECK(outcome.first == -1);
    CHECK(outcome.max_error == 0);
  }
}

TEST_CASE("one wrong element fails wherever it is", "[compare]") {
  const auto r = normals(7 * 37);
  for (const std::size_t at : {std::size_t{0}, r.size() / 2, r.size() - 1}) {
    for (const char* rule :
         {"exact", "near(scale=row)", "near(scale=tensor)", "near(scale=outer)", "elem(1e-4)", "abs(1e-4)",
          "tight(1e-5)", "codes(value; flips<=0.5)", "rows(equal; share>=0.9)", "finite(abs(1e-4))"}) {
      INFO(rule << " at " << at);
      auto y = r;
      y[at] += 0.01f;
      const auto outcome = near_case(rule).judge(y, r);
      CHECK_FALSE(outcome.equal);
      CHECK(outcome.wrong == 1);
      CHECK(outcome.first == static_cast<std::int64_t>(at));
      CHECK(outcome.max_error > 1);
      CHECK_THAT(outcome.reason,
                 Contains("y: ") && Contains("[" + std::to_string(at / 37) + "," + std::to_string(at % 37) + "]"));
    }
  }
}

TEST_CASE("the reason says place, values, count and how far", "[compare]") {
  Case rule{DType::f32, {"2", "3", "4"}, "abs(0.5)"};
  std::vector<float> r(24, 1.25f), y = r;
  y[17] = 3.25f;
  y[23] = 0.5f;
  const auto outcome = rule.judge(y, r);
  CHECK(outcome.reason ==
        "y: 2 of 24 elements differ; first at [1,1,1]: got 3.25, expected 1.25; the largest error is 4 times the "
        "tolerance");
  CHECK(outcome.wrong == 2);
  CHECK(outcome.max_error == 4);
}

TEST_CASE("a NaN or an infinity that the reference lacks fails every rule", "[compare]") {
  const auto r = normals(7 * 37);
  for (const float bad : {kNan, kInf, -kInf}) {
    for (const char* rule :
         {"exact", "near(scale=row)", "near(scale=tensor)", "near(scale=outer)", "elem(1e30, floor=1e30)", "abs(1e30)",
          "tight(1e30)", "codes(value; flips<=1)", "rows(near; share>=0.9)", "finite(near)"}) {
      INFO(rule << " " << bad);
      auto y = r;
      y[100] = bad;
      const auto outcome = near_case(rule).judge(y, r);
      CHECK_FALSE(outcome.equal);
      CHECK(outcome.first == 100);
      if (std::string(rule).find("codes") == std::string::npos)
        CHECK_THAT(outcome.reason, Contains("1 are NaN or infinite where the reference is not"));
    }
  }
  std::vector<float> nans(r.size(), kNan);
  CHECK_FALSE(near_case().judge(nans, r).equal);
  CHECK(near_case().judge(nans, r).wrong == 7 * 37);
}

TEST_CASE("an infinity of the reference must be met, and scales ignore it", "[compare]") {
  auto r = normals(7 * 37);
  r[5] = -kInf;
  r[80] = kInf;
  const Case rule = near_case("finite(near(scale=row))");
  CHECK(rule.judge(r, r).equal);
  auto y = r;
  y[5] = -1e30f;
  CHECK_FALSE(rule.judge(y, r).equal);
  y[5] = kInf;
  CHECK_FALSE(rule.judge(y, r).equal);
  y = r;
  y[6] += 0.01f;  // same row: its scale must not have become infinite
  CHECK(rule.judge(y, r).first == 6);
}

TEST_CASE("trivial outputs do not pass", "[compare]") {
  const auto r = normals(7 * 37);
  const std::vector<float> zeros(r.size(), 0), constant(r.size(), 0.02f);
  for (const char* rule : {"exact", "near(scale=row)", "near(scale=row, precision=bf16)",
                           "near(scale=tensor, precision=bf16)", "near(scale=outer)", "elem(1e-2)", "abs(1e-3)",
                           "tight(1e-5)", "codes(value; flips<=0.002)", "rows(near; share>=0.5)"}) {
    INFO(rule);
    CHECK_FALSE(near_case(rule).judge(zeros, r).equal);
    CHECK_FALSE(near_case(rule).judge(constant, r).equal);
  }
  // Small outputs: a fixed absolute tolerance would let zeros pass, a scale does not.
  auto small = r;
  for (float& value : small) value *= 1e-4f;
  CHECK_FALSE(near_case().judge(zeros, small).equal);
  // Where the reference is zero, zero is right and nothing else.
  CHECK(near_case().judge(zeros, zeros).equal);
  CHECK_FALSE(near_case().judge(constant, zeros).equal);
}

TEST_CASE("near: the edge of the tolerance", "[compare]") {
  // One row (3, 4): s = sqrt(12.5), u = 2^-24.
  const double u = std::ldexp(1, -24), s = std::sqrt(12.5);
  for (const double part : {0.9, 1.1}) {
    Case rule{DType::f64, {"1", "2"}, "near(scale=row, precision=f32)", {4, 0}};
    std::vector<double> r{3, 4}, y{3 + part * 4 * u * (3 + s), 4};
    const auto outcome = rule.judge(y, r);
    CHECK(outcome.equal == (part < 1));
    CHECK(outcome.max_error == Approx(part).epsilon(1e-5));
  }
}

TEST_CASE("near: rows have their own scales, a tensor has one", "[compare]") {
  std::vector<float> r(200);
  for (std::size_t i = 0; i < 100; ++i) r[i] = 1000, r[100 + i] = (i % 2 == 0) ? 1e-3f : -1e-3f;
  auto y = r;
  for (std::size_t i = 100; i < 200; ++i) y[i] = 0;  // a small row lost
  Case by_row{DType::f32, {"2", "100"}, "near(scale=row)", {100, 0}},
      by_tensor{DType::f32, {"2", "100"}, "near(scale=tensor)", {100, 0}};
  CHECK(by_row.judge(y, r).wrong == 100);
  CHECK(by_tensor.judge(y, r).equal);
}

TEST_CASE("near: an outer scale follows rows and columns", "[compare]") {
  // r[i][j] = a[i]*b[j]: s = |a_i b_j| everywhere.
  std::vector<double> a{1, 100, 1e4}, b{1, 1e-3, 5, 20}, r;
  for (const double x : a) {
    for (const double z : b) r.push_back(x * z);
  }
  Case rule{DType::f64, {"3", "4"}, "near(scale=outer, precision=f32)", {8, 0}};
  const double u = std::ldexp(1, -24);
  for (std::size_t i = 0; i < r.size(); ++i) {
    auto y = r;
    y[i] *= 1 + 15 * u;  // admitted: 8u(|r|+|r|) = 16u|r|
    CHECK(rule.judge(y, r).equal);
    y[i] = r[i] * (1 + 17 * u);
    CHECK(rule.judge(y, r).wrong == 1);
  }
}

TEST_CASE("near: the root mean square has a gate of its own", "[compare]") {
  const auto r = normals(7 * 37);
  auto y = r;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::nextafter(std::nextafter(y[i], 9.f), 9.f);
  Case loose{DType::f32, {"7", "37"}, "near(scale=row)", {8, 8}},
      strict{DType::f32, {"7", "37"}, "near(scale=row)", {8, 0.5}},
      off{DType::f32, {"7", "37"}, "near(scale=row)", {8, 0}};
  CHECK(loose.judge(y, r).equal);
  CHECK(loose.judge(y, r).rms_error > 0);
  CHECK(off.judge(y, r).equal);
  const auto outcome = strict.judge(y, r);
  CHECK_FALSE(outcome.equal);
  CHECK(outcome.wrong == 0);
  CHECK(outcome.rms_error > 1);
  CHECK_THAT(outcome.reason, Contains("every element is within its tolerance, but the root mean square error is"));
}

TEST_CASE("near: bf16 rounding passes, one lower precision fails", "[compare]") {
  const auto exact = normals(64 * 128);
  std::vector<kb::bf16> r = rounded(exact), y, lower;
  for (const float value : exact) {
    y.emplace_back(value * (1 + 1e-3f));
    lower.emplace_back(static_cast<float>(kb::e4m3(value)));
  }
  Case rule{DType::bf16, {"64", "128"}, "near(scale=row)", {2, 1}};
  CHECK(rule.judge(y, r).equal);
  CHECK_FALSE(rule.judge(lower, r).equal);
}

TEST_CASE("long rows get the same scales as short ones", "[compare]") {
  constexpr std::size_t kRow = 70'001;
  auto r = normals(3 * kRow);
  for (std::size_t i = 0; i < kRow; ++i) r[kRow + i] *= 1e-5f;
  Case rule{DType::f32, {"3", std::to_string(kRow)}, "near(scale=row)", {4, 0}};
  CHECK(rule.judge(r, r).equal);
  auto y = r;
  y[2 * kRow - 1] = 0;
  const auto outcome = rule.judge(y, r);
  CHECK(outcome.wrong == 1);
  CHECK_THAT(outcome.reason, Contains("[1,70000]"));
}

TEST_CASE("elem, abs and tight", "[compare]") {
  const std::vector<float> r{1e-6f, 1, -1000};
  const auto judged = [&](const std::string& rule, const std::vector<float>& y) {
    return Case{DType::f32, {"3"}, rule}.judge(y, r);
  };
  CHECK(judged("elem(1e-3)", {1.0005e-6f, 1.0005f, -1000.5f}).equal);
  CHECK(judged("elem(1e-3)", {1.01e-6f, 1, -1000}).first == 0);
  CHECK(judged("elem(1e-3, floor=1e-6)", {2e-6f, 1, -1000}).equal);
  CHECK(judged("elem(1e-3, 1e-6)", {2.1e-6f, 1, -1000}).first == 0);
  CHECK(judged("abs(0.01)", {0.005f, 1.005f, -1000.005f}).equal);
  CHECK(judged("abs(0.01)", {0, 1, -1000.5f}).first == 2);
  CHECK(judged("tight(1e-5)", {1e-6f, 1.000005f, -1000.005f}).equal);
  CHECK(judged("tight(1e-5)", {0, 1, -1000}).first == 0);
}

TEST_CASE("exact: bits, integers and signs of zero", "[compare]") {
  CHECK_FALSE(Case{DType::f32, {"2"}, "exact"}.judge<float>({0.f, 1}, {-0.f, 1}).equal);
  CHECK_THAT((Case{DType::f32, {}, "exact"}.judge<float>({1.f}, {std::nextafter(1.f, 2.f)}).reason),
             Contains("[]: got 1, expected 1.00000012"));
  const std::vector<std::int64_t> big{0x7FFFFFFFFFFFFFFF, -5};
  auto other = big;
  other[0] -= 1;  // the same as a double
  const auto outcome = Case{DType::i64, {"2"}, "exact"}.judge(other, big);
  CHECK(outcome.reason ==
        "y: 1 of 2 elements differ; first at [0]: got 9223372036854775806, expected 9223372036854775807");
  CHECK(Case{DType::u64, {"1"}, "exact"}.judge<std::uint64_t>({~0ull}, {~0ull}).equal);
  CHECK_THAT((Case{DType::u64, {"1"}, "exact"}.judge<std::uint64_t>({~0ull}, {~0ull - 1}).reason),
             Contains("got 18446744073709551615"));
}

TEST_CASE("codes: a bounded share of neighbours", "[compare]") {
  Case rule{DType::e4m3, {"10", "100"}, "codes(value; flips<=0.002)"};
  std::vector<kb::e4m3> r;
  for (int i = 0; i < 1000; ++i) r.emplace_back(static_cast<float>(i % 50) - 25);
  auto y = r;
  for (const std::size_t i : {0u, 999u}) ++y[i].bits;
  CHECK(rule.judge(y, r).equal);
  ++y[500].bits;
  const auto outcome = rule.judge(y, r);
  CHECK_FALSE(outcome.equal);
  CHECK(outcome.reason == "y: 3 of 1000 codes are off by one; 2 may be");
  y = r;
  y[7].bits = static_cast<std::uint8_t>(y[7].bits + 2);
  CHECK(rule.judge(y, r).first == 7);
  CHECK_THAT(rule.judge(y, r).reason, Contains("[0,7]"));
}

TEST_CASE("codes: neighbours across zero, NaN has none", "[compare]") {
  Case rule{DType::e4m3, {"4"}, "codes(value; flips<=1)"};
  const auto codes = [](std::initializer_list<int> list) {
    std::vector<kb::e4m3> values(list.size());
    std::size_t i = 0;
    for (const int code : list) values[i++].bits = static_cast<std::uint8_t>(code);
    return values;
  };
  CHECK(rule.judge(codes({0x80, 0x01, 0x81, 0x7E}), codes({0x00, 0x00, 0x00, 0x7D}))
            .equal);                                                              // -0; +-smallest; next to the largest
  CHECK_FALSE(rule.judge(codes({0x81, 0, 0, 0}), codes({0x01, 0, 0, 0})).equal);  // two steps, over zero
  CHECK_FALSE(rule.judge(codes({0x7F, 0, 0, 0}), codes({0x7E, 0, 0, 0})).equal);  // NaN beside the largest
  CHECK_FALSE(rule.judge(codes({0x7E, 0, 0, 0}), codes({0x7F, 0, 0, 0})).equal);
}

TEST_CASE("codes: packed values count alone", "[compare]") {
  std::vector<std::uint8_t> r(50, 0x37), y = r;
  Case fp4{DType::e2m1x2, {"5", "10"}, "codes(value; flips<=0)"};
  y[49] = 0x27;  // the high value, [4,19]: 1.5 became 1
  CHECK(fp4.judge(r, r).equal);
  auto outcome = fp4.judge(y, r);
  CHECK_FALSE(outcome.equal);
  CHECK_THAT(outcome.reason, Contains("1 of 100 codes are off by one; 0 may be"));
  y[49] = 0x07;
  outcome = fp4.judge(y, r);
  CHECK(outcome.first == 99);
  CHECK_THAT(outcome.reason, Contains("1 of 100 elements differ; first at [4,19]: got 0, expected 1.5"));

  Case nibbles{DType::u8, {"50"}, "codes(uint4; flips<=0.01)"};
  y = r;
  y[0] = 0x36;
  CHECK(nibbles.judge(y, r).equal);
  y[0] = 0x35;
  CHECK_THAT(nibbles.judge(y, r).reason, Contains("first at [0]: got code 5, expected code 7"));
  y[0] = 0x27;  // the byte differs by 16, its nibble by 1
  CHECK(nibbles.judge(y, r).equal);

  Case crumbs{DType::i32, {"1"}, "codes(uint2; flips<=0)"};
  CHECK(crumbs.judge<std::int32_t>({0b1101}, {0b1101}).equal);
  CHECK_THAT(crumbs.judge<std::int32_t>({0b001101}, {0b111101}).reason,
             Contains("1 of 16 elements differ; first at [2]"));

  Case signed_nibbles{DType::u8, {"1"}, "codes(int4; flips<=1)"};
  CHECK(signed_nibbles.judge<std::uint8_t>({0x0F}, {0x00}).equal);        // -1 beside 0
  CHECK_FALSE(signed_nibbles.judge<std::uint8_t>({0x08}, {0x07}).equal);  // -8 is far from 7
}

TEST_CASE("codes: integers at their ends do not wrap", "[compare]") {
  CHECK_FALSE(Case{DType::u8, {"1"}, "codes(value; flips<=1)"}.judge<std::uint8_t>({255}, {0}).equal);
  CHECK_FALSE(Case{DType::i8, {"1"}, "codes(value; flips<=1)"}.judge<std::int8_t>({127}, {-128}).equal);
  CHECK(Case{DType::i8, {"1"}, "codes(value; flips<=1)"}.judge<std::int8_t>({-1}, {0}).equal);
  CHECK_FALSE(Case{DType::i64, {"1"}, "codes(value; flips<=1)"}.judge<std::int64_t>({INT64_MAX}, {INT64_MIN}).equal);
  CHECK_FALSE(Case{DType::u64, {"1"}, "codes(value; flips<=1)"}.judge<std::uint64_t>({~0ull}, {0}).equal);
  CHECK(Case{DType::u64, {"1"}, "codes(value; flips<=1)"}.judge<std::uint64_t>({~0ull}, {~0ull - 1}).equal);
  CHECK(Case{DType::e8m0, {"1"}, "codes(value; flips<=1)"}.judge<std::uint8_t>({128}, {127}).equal);
}

TEST_CASE("rows: a share of the rows may differ", "[compare]") {
  Case rule{DType::i32, {"200", "3"}, "rows(equal; share>=0.995)"};
  std::vector<std::int32_t> r(600);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<std::int32_t>(i);
  auto y = r;
  y[599] = y[598] = -1;
  CHECK(rule.judge(y, r).equal);
  y[0] = -1;
  const auto outcome = rule.judge(y, r);
  CHECK_FALSE(outcome.equal);
  CHECK_THAT(outcome.reason, Contains("2 of 200 rows differ, 1 may") && Contains("first at [0,0]: got -1, expected 0"));
}

TEST_CASE("rows: the elements of a list are rows", "[compare]") {
  std::vector<std::int32_t> r(400, 5), y = r;
  y[1] = y[3] = 6;
  Case rule{DType::i32, {"400"}, "rows(equal; share>=0.995)"};
  CHECK(rule.judge(y, r).equal);
  y[5] = 6;
  CHECK_FALSE(rule.judge(y, r).equal);
  std::vector<float> numbers(400, 1.f), off = numbers;
  off[0] = 2;
  Case near{DType::f32, {"400"}, "rows(near; share>=0.995)", {4, 0}};
  CHECK(near.judge(off, numbers).equal);
  off[1] = off[2] = 2;
  CHECK_THAT(near.judge(off, numbers).reason, Contains("3 of 400 rows differ, 2 may"));
  off = numbers;
  off[7] = kNan;  // no share of rows may hold what the reference does not
  CHECK_FALSE(near.judge(off, numbers).equal);
}

TEST_CASE("delta: the change counts, not the value", "[compare]") {
  Case rule{DType::f32, {"1000"}, "delta", {64, 32}, Role::inout};
  const auto x = normals(1000, 2), change = normals(1000, 3);
  auto r = x, half = x, close = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    r[i] = x[i] + 1e-3f * change[i];
    half[i] = x[i] + 0.5e-3f * change[i];
    close[i] = std::nextafter(r[i], 9.f);
  }
  CHECK(rule.judge(r, r, x).equal);
  CHECK(rule.judge(close, r, x).equal);             // an ulp of the parameter is no error of the update
  CHECK(rule.judge(close, r, x).max_error < 0.05);  // nor does it count where a tolerance is measured
  CHECK_FALSE(rule.judge(x, r, x).equal);           // nothing done
  CHECK_FALSE(rule.judge(half, r, x).equal);        // half done, 5e-4 of the value
  auto y = r;
  y[999] += 1e-4f;
  CHECK(rule.judge(y, r, x).first == 999);
  CHECK_THROWS_WITH(rule.judge(r, r), Contains("its content before is not at hand"));
}

TEST_CASE("delta: an optimizer's step with a part left out is seen", "[compare]") {
  constexpr std::size_t kCount = 4000;
  Case rule{DType::f32, {std::to_string(kCount)}, "delta", {8, 1.7}, Role::inout};
  const auto parameters = normals(kCount, 4), m = normals(kCount, 5), v = normals(kCount, 6);
  struct Parts {
    double decay = 0.1, bias1 = 0.65, bias2 = 0.4, slowest = 1, share = 1;
  };
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) x[i] = 0.1f * parameters[i];
  // Two tensors, with a rate of 1e-2 and of 1e-4.
  const auto stepped = [&](const Parts& parts, bool other_order) {
    std::vector<float> result(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto rate = static_cast<float>(i < kCount / 2 ? 1e-2 : 1e-4 * parts.slowest),
                 decay = static_cast<float>(parts.decay), share = static_cast<float>(parts.share);
      const float update =
          m[i] / static_cast<float>(parts.bias1) / (std::sqrt(v[i] * v[i] / static_cast<float>(parts.bias2)) + 1e-1f);
      result[i] = other_order ? std::fma(x[i], 1 - rate * decay, -(rate * share) * update)
                              : x[i] - share * rate * (update + decay * x[i]);
    }
    return result;
  };
  const auto r = stepped({}, false);
  const auto honest = rule.judge(stepped({}, true), r, x);
  CHECK(honest.equal);
  CHECK(honest.max_error < 0.25);  // a tolerance of four floors would be no larger than this
  CHECK_FALSE(rule.judge(x, r, x).equal);
  CHECK_FALSE(rule.judge(stepped({.decay = 0}, false), r, x).equal);
  CHECK_FALSE(rule.judge(stepped({.bias1 = 1}, false), r, x).equal);
  CHECK_FALSE(rule.judge(stepped({.bias2 = 1}, false), r, x).equal);
  CHECK_FALSE(rule.judge(stepped({.slowest = 0}, false), r, x).equal);  // the slower tensor not stepped
  CHECK_FALSE(rule.judge(stepped({.slowest = 0.99}, false), r, x).equal);
  CHECK_FALSE(rule.judge(stepped({.share = 1.0001}, false), r, x).equal);
}

TEST_CASE("an empty tensor is equal", "[compare]") {
  for (const char* rule :
       {"exact", "near(scale=row)", "near(scale=outer)", "rows(equal; share>=0.5)", "codes(value; flips<=0)"}) {
    CHECK(Case{DType::f32, {"0", "4"}, rule, {1, 1}}.judge<float>({}, {}).equal);
    CHECK(Case{DType::f32, {"4", "0"}, rule, {1, 1}}.judge<float>({}, {}).equal);
  }
}

TEST_CASE("a region that is too small is the verifier's own fault", "[compare]") {
  CHECK_THROWS_AS((Case{DType::f32, {"5"}, "exact"}.judge<float>({1, 2, 3, 4}, {1, 2, 3, 4})), std::logic_error);
}
