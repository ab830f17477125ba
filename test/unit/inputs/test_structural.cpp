#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "made.h"

using namespace kbench;
using namespace kbench::inputs_test;

namespace {

std::vector<double> line(const std::vector<double>& x, std::size_t row, std::size_t length) {
  return {x.begin() + static_cast<std::ptrdiff_t>(row * length),
          x.begin() + static_cast<std::ptrdiff_t>((row + 1) * length)};
}
std::vector<double> sorted(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x;
}
std::vector<double> counting(std::size_t n) {
  std::vector<double> x(n);
  std::iota(x.begin(), x.end(), 0.0);
  return x;
}
bool distinct(const std::vector<double>& x) { return std::set<double>(x.begin(), x.end()).size() == x.size(); }

}  // namespace

TEST_CASE("a permutation has every number once", "[structural]") {
  for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 17u, 64u, 65u, 1000u, 4097u}) {
    const auto x = made("perm(N)", DType::i32, {"N"}, {{"N", static_cast<std::int64_t>(n)}});
    CHECK(sorted(x) == counting(n));
    if (n > 16) CHECK(x != counting(n));
  }
  const auto rows = made("perm(7)@i0", DType::i32, {"5", "7"});
  for (std::size_t row = 0; row < 5; ++row) CHECK(sorted(line(rows, row, 7)) == counting(7));
  CHECK(line(rows, 0, 7) != line(rows, 1, 7));
}

TEST_CASE("small permutations are close to fair", "[structural]") {
  std::map<std::vector<double>, int> seen;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++seen[made("perm(3)", DType::i32, {"3"}, {}, seed)];
  CHECK(seen.size() == 6);
  for (const auto& [order, count] : seen) CHECK(count == Approx(1000).margin(200));
}

TEST_CASE("a permutation of more than 2^32 is one at any place", "[structural]") {
  const std::int64_t n = (std::int64_t{1} << 33) + 12345;
  std::set<std::int64_t> places;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const std::int64_t place = inputs::permuted(n - 1 - i, n, 99);
    CHECK((place >= 0 && place < n));
    places.insert(place);
  }
  CHECK(places.size() == 2000);
}

TEST_CASE("a permutation at given places", "[structural]") {
  const auto x = made("perm(6)@(i0,i2//2) along i1", DType::i32, {"2", "6", "4"});
  for (std::size_t i0 = 0; i0 < 2; ++i0) {
    for (std::size_t i2 = 0; i2 < 4; ++i2) {
      std::vector<double> along;
      for (std::size_t i1 = 0; i1 < 6; ++i1) along.push_back(x[(i0 * 6 + i1) * 4 + i2]);
      CHECK(sorted(along) == counting(6));
    }
    CHECK(x[i0 * 24] == x[i0 * 24 + 1]);
  }
  const auto applied = made("let p=perm(8): p[(3*i0+i1)%8]", DType::i32, {"4", "3"});
  CHECK(line(applied, 1, 3)[0] != line(applied, 0, 3)[0]);
  CHECK(distinct(line(applied, 0, 3)));
}

TEST_CASE("subsets are distinct and inside", "[structural]") {
  const auto loose = made("subset(20,50)@row", DType::i32, {"30", "20"}),
             tight = made("subset(20,50,sorted)@row", DType::i32, {"30", "20"});
  for (std::size_t row = 0; row < 30; ++row) {
    const auto a = line(loose, row, 20), b = line(tight, row, 20);
    CHECK(distinct(a));
    CHECK((sorted(a).front() >= 0 && sorted(a).back() < 50));
    CHECK(distinct(b));
    CHECK(b == sorted(b));
    CHECK((b.front() >= 0 && b.back() < 50));
  }
  CHECK(line(tight, 0, 20) != line(tight, 1, 20));
  CHECK(made("subset(5,5,sorted)", DType::i32, {"5"}) == counting(5));
  const auto growing = made("subset(4,i0+1,pad=-1)@row", DType::i32, {"5", "4"});
  CHECK(sorted(line(growing, 0, 4)) == std::vector<double>{-1, -1, -1, 0});
  CHECK(sorted(line(growing, 2, 4)) == std::vector<double>{-1, 0, 1, 2});
}

TEST_CASE("a ladder's sum is a function of the shape", "[structural]") {
  const auto x = made("ladder(B, SM)", DType::i32, {"B"}, {{"B", 7}, {"SM", 100}});
  CHECK(sorted(x) == std::vector<double>{15, 29, 43, 58, 72, 86, 100});
  CHECK(sorted(made("ladder(4, 100, min=60)", DType::i32, {"4"})) == std::vector<double>{60, 60, 75, 100});
}

TEST_CASE("a multiset has exact counts", "[structural]") {
  const auto count = [](const std::vector<double>& x, double v) { return std::count(x.begin(), x.end(), v); };
  const auto x = made("multiset(1:K, -1:2, 0:rest)@row", DType::i32, {"4", "20"}, {{"K", 5}});
  for (std::size_t row = 0; row < 4; ++row) {
    CHECK(count(line(x, row, 20), 1) == 5);
    CHECK(count(line(x, row, 20), -1) == 2);
    CHECK(count(line(x, row, 20), 0) == 13);
  }
  CHECK(line(x, 0, 20) != line(x, 1, 20));
  const auto groups = made("multiset(0..3: 6)", DType::i32, {"24"});
  for (int v = 0; v < 4; ++v) CHECK(count(groups, v) == 6);
  const auto chosen = made("let k=multiset(0:3, 1:2): where(k == 0, 10, 20)", DType::i32, {"5"});
  CHECK(count(chosen, 10) == 3);
}

TEST_CASE("offsets begin at 0, end at the total and do not fall", "[structural]") {
  const auto well_formed = [](const std::vector<double>& x, double total, double least) {
    if (x.front() != 0 || x.back() != total) return false;
    for (std::size_t i = 1; i < x.size(); ++i) {
      if (x[i] - x[i - 1] < least) return false;
    }
    return true;
  };
  CHECK(well_formed(made("offsets(9, 100, cuts)", DType::i32, {"10"}), 100, 1));
  CHECK(well_formed(made("offsets(1, 100, cuts)", DType::i32, {"2"}), 100, 100));
  CHECK(well_formed(made("offsets(5, 5, cuts)", DType::i32, {"6"}), 5, 1));
  CHECK(well_formed(made("offsets(50, 20, cuts_with_repeats)", DType::i32, {"51"}), 20, 0));
  CHECK(well_formed(
      made("offsets(NS, U*NS*(NS+1)//2, list; U*(perm(NS)+1))", DType::i32, {"NS+1"}, {{"NS", 8}, {"U", 3}}), 108, 3));
  CHECK(well_formed(made("offsets(8, 40, list; multiset(2:2, 5:4, 8:2))", DType::i32, {"9"}), 40, 2));
  CHECK(well_formed(made("offsets(E, R, sizes; weights=where(bernoulli(1/4), 0, (perm(E)+1)^-0.7))", DType::i32,
                         {"E+1"}, {{"E", 16}, {"R", 999}}),
                    999, 0));
  const auto bounded = made("offsets(10, 200, sizes; weights=loguniform(0.01,10), min=5, max=40)", DType::i32, {"11"});
  CHECK(well_formed(bounded, 200, 5));
  for (std::size_t i = 1; i < bounded.size(); ++i) CHECK(bounded[i] - bounded[i - 1] <= 40);
  const auto rows = made("offsets(4, 30, cuts)@row", DType::i32, {"6", "5"});
  for (std::size_t row = 0; row < 6; ++row) CHECK(well_formed(line(rows, row, 5), 30, 1));
  CHECK(line(rows, 0, 5) != line(rows, 1, 5));
}

TEST_CASE("the offsets of nothing are 0", "[structural]") {
  for (const char* rest : {"cuts_with_repeats", "sizes; weights=loguniform(5,10)", "list; loguniform(5,10)"}) {
    const std::string text = "offsets(N, 0, " + std::string(rest) + ")";
    INFO(text);
    CHECK(made(text, DType::i32, {"N+1"}, {{"N", 0}}) == std::vector<double>{0});
    CHECK(made(text, DType::i32, {"3", "N+1"}, {{"N", 0}}) == std::vector<double>{0, 0, 0});
    CHECK(made(text + " |map(_+7)", DType::i32, {"N+1"}, {{"N", 0}}) == std::vector<double>{7});
  }
  CHECK_THROWS_WITH(made("offsets(N, 5, cuts_with_repeats)", DType::i32, {"N+1"}, {{"N", 0}}),
                    Catch::Contains("offsets of nothing end at 0"));
  CHECK(made("sizes(N, 0, weights=loguniform(5,10))", DType::i32, {"N"}, {{"N", 0}}).empty());
}

TEST_CASE("sizes have the exact total within their bounds", "[structural]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto x = made("sizes(12, 333, weights=loguniform(0.01,10), min=3, max=60)", DType::i32, {"12"}, {}, seed);
    CHECK(std::accumulate(x.begin(), x.end(), 0.0) == 333);
    CHECK(sorted(x).front() >= 3);
    CHECK(sorted(x).back() <= 60);
  }
  CHECK(made("sizes(3, 30, weights=const(1), max=10)", DType::i32, {"3"}) == std::vector<double>{10, 10, 10});
}

TEST_CASE("pages are disjoint and end where the sequence does", "[structural]") {
  const Made tensors({{"len", DType::i32, {"4"}, "pick(i0; 0, 1, 16, 17)"},
                      {"cu", DType::i32, {"5"}, "pick(i0; 0, 0, 1, 17, 34)"},
                      {"tab", DType::i32, {"4", "3"}, "pages($len, 16, 9)"},
                      {"tab2", DType::i32, {"4", "3"}, "pages(diff($cu), 16, 9)"}});
  for (const char* name : {"tab", "tab2"}) {
    const auto x = tensors.values(name);
    std::vector<double> used;
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t i = 0; i < 3; ++i) {
        const bool expected = i < std::vector<std::size_t>{0, 1, 1, 2}[row];
        CHECK((x[3 * row + i] >= 0) == expected);
        if (expected) used.push_back(x[3 * row + i]);
      }
    }
    CHECK(distinct(used));
    CHECK(sorted(used).back() < 9);
  }
}

TEST_CASE("top chooses the largest scores", "[structural]") {
  const auto best = made("top(10; -_)", DType::i32, {"2", "3"});
  CHECK(best == std::vector<double>{0, 1, 2, 0, 1, 2});
  const auto equal = made("top(4; const(1))", DType::i32, {"1", "4"});
  CHECK(equal == counting(4));
  const auto x = made("top(16; normal(0,1)@(row,_) + normal(0,0.5)@_)", DType::i32, {"50", "4"});
  std::set<std::vector<double>> rows;
  for (std::size_t row = 0; row < 50; ++row) {
    CHECK(distinct(line(x, row, 4)));
    rows.insert(line(x, row, 4));
  }
  CHECK(rows.size() > 40);
}

TEST_CASE("a score that is no number is the least", "[structural]") {
  // More than one look at the candidates takes, so that a second look has to know what the first one took.
  const auto x = made("top(40; where(_ % 3 == 0, nan, -_))", DType::i32, {"2", "40"});
  std::vector<double> expected;
  for (int n = 0; n < 40; ++n)
    if (n % 3 != 0) expected.push_back(n);
  for (int n = 0; n < 40; n += 3) expected.push_back(n);
  CHECK(line(x, 0, 40) == expected);
  CHECK(line(x, 1, 40) == expected);
  CHECK(sorted(made("top(40; nan; shuffled)", DType::i32, {"40"})) == counting(40));
}

TEST_CASE("segments of a line of offsets that does not exist", "[structural]") {
  const Made tensors({{"off", DType::i32, {"2", "4"}, "pick(i1; 0, 2, 3, 5+i0)"},
                      {"id", DType::i32, {"6"}, "segment($off[pick(i0; -1, 0, 1, 2, 1e18, nan)], 2)"},
                      {"last", DType::i32, {"2"}, "segment($off[i0], 5)"}});
  CHECK(tensors.values("id") == std::vector<double>{-1, 1, 1, -1, -1, -1});
  CHECK(tensors.values("last") == std::vector<double>{3, 2});
}

TEST_CASE("segments of ragged offsets", "[structural]") {
  const Made tensors({{"off", DType::i32, {"4"}, "pick(i0; 0, 2, 2, 5)"},
                      {"id", DType::i32, {"5"}, "segment($off)"},
                      {"w", DType::f64, {"5"}, "normal(0,1)@segment($off)"}});
  CHECK(tensors.values("id") == std::vector<double>{0, 0, 2, 2, 2});
  const auto w = tensors.values("w");
  CHECK((w[0] == w[1] && w[2] == w[4] && w[1] != w[2]));
}

TEST_CASE("zipf prefers small ranks", "[structural]") {
  for (const char* s : {"1.0", "0.8"}) {
    const auto x = made("zipf(100, " + std::string(s) + ")", DType::i32, {"20000"});
    const auto count = [&](double v) { return std::count(x.begin(), x.end(), v); };
    CHECK(sorted(x).front() == 0);
    CHECK(sorted(x).back() < 100);
    CHECK(count(0) > 2 * count(3));
    CHECK(count(3) > 2 * count(30));
  }
  const auto shuffled = made("zipf(100, 1.0, shuffled)", DType::i32, {"5000"});
  std::map<double, int> counts;
  for (const double v : shuffled) ++counts[v];
  CHECK(std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; })->second >
        500);
}

TEST_CASE("packed draws", "[structural]") {
  const auto x = made("pack4x2(int(0,3))", DType::u8, {"500"});
  for (const double v : x) {
    for (int i = 0; i < 4; ++i) CHECK((static_cast<int>(v) >> (2 * i) & 3) < 3);
  }
  CHECK(std::set<double>(x.begin(), x.end()).size() > 60);
}

TEST_CASE("records hold whole values", "[structural]") {
  const Made tensors(
      {{"w", DType::u8, {"50", "10"}, "record(0:10 bits, 0:2 f16 = uniform(0.25,0.5), 4:8 f32 = 2^int(-8,3))"}});
  const auto& bytes = tensors.bytes("w");
  std::set<float> scales;
  for (std::int64_t row = 0; row < 50; ++row) {
    const double f16 = inputs::load(DType::f16, bytes.data() + row * 10, 0);
    CHECK((f16 >= 0.25 && f16 <= 0.5));
    float scale;
    std::memcpy(&scale, bytes.data() + row * 10 + 4, 4);
    CHECK(std::log2(scale) == std::floor(std::log2(scale)));
    scales.insert(scale);
  }
  CHECK(scales.size() > 5);
}

TEST_CASE("steps over rows", "[posts]") {
  const auto soft = made("normal(0,1) |softmax(last)", DType::f64, {"6", "50"});
  for (std::size_t row = 0; row < 6; ++row) {
    const auto x = line(soft, row, 50);
    CHECK(std::accumulate(x.begin(), x.end(), 0.0) == Approx(1));
  }
  const auto unit = made("normal(0,1) |l2norm(i0)", DType::f64, {"40", "3"});  // along the first axis
  for (std::size_t column = 0; column < 3; ++column) {
    double sum = 0;
    for (std::size_t i = 0; i < 40; ++i) sum += unit[3 * i + column] * unit[3 * i + column];
    CHECK(sum == Approx(1));
  }
  const auto raw = made("0+int(0,50)", DType::i32, {"9", "33"}),  // the same draws: a plain law has others

      up = made("int(0,50) |sort(last)", DType::i32, {"9", "33"}),
             down = made("int(0,50) |sort(last, desc)", DType::i32, {"9", "33"});
  for (std::size_t row = 0; row < 9; ++row) {
    CHECK(line(up, row, 33) == sorted(line(raw, row, 33)));
    auto reversed = line(down, row, 33);
    std::reverse(reversed.begin(), reversed.end());
    CHECK(reversed == sorted(line(raw, row, 33)));
  }
  CHECK(made("const(1) |cumsum(i0, chunk=3)", DType::f32, {"7"}) == std::vector<double>{1, 2, 3, 1, 2, 3, 1});
  CHECK(made("const(1) |cumsum(i0)", DType::f32, {"4"}) == std::vector<double>{1, 2, 3, 4});
  CHECK(made("i0 |sort(last, desc) |fill(i0 == 1, -5) |map(_*2)", DType::i32, {"4"}) ==
        std::vector<double>{6, -10, 2, 0});
}

TEST_CASE("steps over elements", "[posts]") {
  CHECK(made("i0 |fill(i0%2 == 1, -1)", DType::i32, {"4"}) == std::vector<double>{0, -1, 2, -1});
  CHECK(made("10*i0-20 |clip(15)", DType::i32, {"5"}) == std::vector<double>{-15, -10, 0, 10, 15});
  CHECK(made("i0 |map(_^2+1)", DType::i32, {"3"}) == std::vector<double>{1, 2, 5});
  const auto exact = made("const(0) |fill_exact(7, 1)", DType::i32, {"5", "10"});
  CHECK(std::count(exact.begin(), exact.end(), 1) == 7);
  const auto along = made("const(0) |fill_exact(2, 1, along=i0)", DType::i32, {"6", "4"});
  for (std::size_t column = 0; column < 4; ++column) {
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += along[4 * i + column];
    CHECK(sum == 2);
  }
  const auto of = made("const(0) |fill_exact(3, 1, of=(i1,i2))", DType::i32, {"2", "3", "4"});
  CHECK(line(of, 0, 12) == line(of, 1, 12));
  CHECK(std::count(of.begin(), of.end(), 1) == 6);
  const auto symmetric = made("normal(0,1) |symmetric", DType::f64, {"2", "5", "5"});
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t j = 0; j < 5; ++j) CHECK(symmetric[25 * b + 5 * i + j] == symmetric[25 * b + 5 * j + i]);
    }
  }
  CHECK(symmetric[1] != symmetric[2]);
  const Made added({{"lab", DType::i32, {"3"}, "pick(i0; 4, 0, 2)"},
                    {"x", DType::f32, {"3", "5"}, "zeros |add_at($lab, const(9))"},
                    {"y", DType::f32, {"3", "5"}, "zeros |add_at(subset(2,5), const(1))"}});
  CHECK(added.values("x") == std::vector<double>{0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0, 9, 0, 0});
  for (std::size_t row = 0; row < 3; ++row) {
    const auto x = line(added.values("y"), row, 5);
    CHECK(std::accumulate(x.begin(), x.end(), 0.0) == 2);
  }
}

TEST_CASE("empty tensors are made without a row", "[structural]") {
  CHECK(made("normal(0,1) |softmax(last)", DType::f32, {"0", "4"}).empty());
  CHECK(made("normal(0,1) |softmax(last)", DType::f32, {"4", "0"}).empty());
  CHECK(made("bits", DType::u8, {"0"}).empty());
}

TEST_CASE("unperm undoes perm", "[structural]") {
  for (const char* n : {"1", "2", "7", "64", "1000"}) {
    const std::string perm = std::string("shared(p; perm(") + n + ")@0 along ";
    const Made made({{"p", DType::i32, {n}, perm + "linear)"},
                     {"q", DType::i32, {n}, std::string("shared(p; unperm(") + n + ")@0 along $p)"}});
    const auto q = made.values("q");
    for (std::size_t i = 0; i < q.size(); ++i) CHECK(q[i] == static_cast<double>(i));
  }
}

TEST_CASE("loops over an expression", "[structural]") {
  const Made made({{"x", DType::f32, {"5", "12"}, "normal(0,1)"},
                   {"low", DType::f32, {"5", "3"}, "over(min, 4; $x[i0,4*i1+_])"},
                   {"high", DType::f32, {"5", "3"}, "over(max, 4; $x[i0,4*i1+_])"},
                   {"sum", DType::f64, {"5"}, "over(sum, i0+1; over(sum, 2; 10*_+1))"},
                   {"none", DType::f64, {"2"}, "over(sum, i0; 1)"},
                   {"power", DType::f64, {"6"}, "repeat(10, i0; 2*_)"}});
  const auto x = made.values("x"), low = made.values("low"), high = made.values("high");
  for (std::size_t row = 0; row < 5; ++row)
    for (std::size_t page = 0; page < 3; ++page) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(12 * row + 4 * page);
      CHECK(low[3 * row + page] == *std::min_element(begin, begin + 4));
      CHECK(high[3 * row + page] == *std::max_element(begin, begin + 4));
    }
  CHECK(made.values("sum") == std::vector<double>{12, 24, 36, 48, 60});
  CHECK(made.values("none") == std::vector<double>{0, 1});
  CHECK(made.values("power") == std::vector<double>{0, 1024, 2048, 3072, 4096, 5120});
}

TEST_CASE("an ungrouped draw in a loop is another one each time, a permutation is not", "[structural]") {
  const auto sums = made("over(sum, 100; bernoulli(0.5))", DType::i32, {"200"});
  CHECK(inputs_test::mean(sums) == Approx(50).margin(2));
  CHECK(inputs_test::variance(sums) == Approx(25).margin(10));
  CHECK(made("over(sum, 10; perm(10)@0 along _)", DType::i32, {"3"}) == std::vector<double>{45, 45, 45});
}

TEST_CASE("packed values; the highest bit of a signed tensor is its sign", "[structural]") {
  CHECK(made("pack(4, 8; _+1)", DType::u32, {"1"})[0] == 0x04030201);
  CHECK(made("pack(32, 1; 1)", DType::i32, {"1"})[0] == -1);
  CHECK(made("pack(32, 1; _ == 31)", DType::i32, {"1"})[0] == -2147483648.0);
  CHECK(made("pack(32, 1; 1)", DType::u32, {"1"})[0] == 4294967295.0);
  CHECK(made("pack(8, 1; _ == 7)", DType::i8, {"1"})[0] == -128);
  bool negative = false;
  for (const double x : made("pack8x4(choice(4,8,12,9,13,14))", DType::i32, {"300"})) {
    const auto word = static_cast<std::uint32_t>(static_cast<std::int64_t>(x));
    negative = negative || x < 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t field = word >> (4 * i) & 15;
      CHECK((field == 4 || field == 8 || field == 12 || field == 9 || field == 13 || field == 14));
    }
  }
  CHECK(negative);
}

TEST_CASE("top: the best of all, whatever the number of looks", "[structural]") {
  const Made made({{"score", DType::f32, {"3", "60"}, "normal(0,1)"},
                   {"best", DType::i32, {"3", "40"}, "top(60; $score[i0,_])"},
                   {"few", DType::i32, {"3", "5"}, "top(60; $score[i0,_]; shuffled)"}});
  const auto score = made.values("score"), best = made.values("best"), few = made.values("few");
  for (std::size_t row = 0; row < 3; ++row) {
    std::vector<double> order(60);
    std::iota(order.begin(), order.end(), 0.0);
    std::sort(order.begin(), order.end(), [&](double a, double b) {
      return score[60 * row + static_cast<std::size_t>(a)] > score[60 * row + static_cast<std::size_t>(b)];
    });
    for (std::size_t i = 0; i < 40; ++i) CHECK(best[40 * row + i] == order[i]);
    std::set<double> wanted(order.begin(), order.begin() + 5);
    CHECK(std::set<double>(few.begin() + static_cast<std::ptrdiff_t>(5 * row),
                           few.begin() + static_cast<std::ptrdiff_t>(5 * row + 5)) == wanted);
  }
}

TEST_CASE("sinkhorn makes rows and columns sum to one", "[structural]") {
  const auto x = made("normal(0,1) |sinkhorn(40)", DType::f32, {"3", "4", "4"});
  for (std::size_t m = 0; m < 3; ++m)
    for (std::size_t i = 0; i < 4; ++i) {
      double row = 0, column = 0;
      for (std::size_t j = 0; j < 4; ++j) row += x[16 * m + 4 * i + j], column += x[16 * m + 4 * j + i];
      CHECK(row == Approx(1).margin(1e-5));
      CHECK(column == Approx(1).margin(1e-5));
    }
}

// The definition, number by number: what the bound cuts off is carried on, the rest goes to the front.
TEST_CASE("sizes by chunks are those of the definition", "[structural]") {
  const struct {
    std::int64_t n, total, least, largest;
  } cases[] = {{1, 5, 0, 5}, {700, 5000, 0, 20}, {5000, 100000, 3, 30}, {3000, 90000, 0, 90000}, {2000, 60000, 30, 30}};
  for (const auto& c : cases) {
    const std::string n = std::to_string(c.n);
    const std::string bounds = std::to_string(c.total) + ", sizes; weights=$w[min(last," + std::to_string(c.n - 1) +
                               ")], min=" + std::to_string(c.least) + ", max=" + std::to_string(c.largest) + ")";
    const Made made(
        {{"w", DType::f64, {n}, "pareto(1)"}, {"off", DType::i32, {n + "+1"}, "offsets(" + n + ", " + bounds}});
    const auto w = made.values("w"), off = made.values("off");
    double all = 0, reached = 0, given = 0, carry = 0;
    const double shared = static_cast<double>(c.total - c.least * c.n);
    for (const double weight : w) all += weight;
    std::vector<double> sizes;
    for (std::size_t i = 0; i < w.size(); ++i) {
      reached += w[i];
      const double until = i + 1 == w.size() ? shared : std::floor(shared * (reached / all));
      const double size = static_cast<double>(c.least) + until - given + carry;
      given = until;
      carry = std::max(0.0, size - static_cast<double>(c.largest));
      sizes.push_back(size - carry);
    }
    for (double& size : sizes) {
      const double taken = std::min(carry, static_cast<double>(c.largest) - size);
      size += taken;
      carry -= taken;
    }
    // Sums by chunks round otherwise than one sum does: a cut may fall one lower or higher.
    double sum = 0, largest_difference = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sum += sizes[i];
      largest_difference = std::max(largest_difference, std::fabs(off[i + 1] - sum));
      CHECK(off[i + 1] - off[i] >= static_cast<double>(c.least));
      CHECK(off[i + 1] - off[i] <= static_cast<double>(c.largest));
    }
    INFO(n);
    CHECK(largest_difference <= 1);
    CHECK(off.front() == 0);
    CHECK(off.back() == static_cast<double>(c.total));
  }
}

TEST_CASE("subsets of drawn sizes inside ragged lines", "[structural]") {
  const Made made(
      {{"off", DType::i32, {"3", "9"}, "offsets(8, 100, sizes; weights=loguniform(0.2,5), max=30)"},
       {"col",
        DType::i32,
        {"3", "100"},
        "let r=segment($off[i0], i1), b=$off[i0,r]: subset($off[i0,r+1]-b, 50, sorted)@(i0,r) along i1-b"}});
  const auto off = made.values("off"), col = made.values("col");
  for (std::size_t line = 0; line < 3; ++line)
    for (std::size_t r = 0; r < 8; ++r) {
      const auto begin = static_cast<std::size_t>(off[9 * line + r]),
                 end = static_cast<std::size_t>(off[9 * line + r + 1]);
      for (std::size_t i = begin; i < end; ++i) {
        CHECK(col[100 * line + i] >= 0);
        CHECK(col[100 * line + i] < 50);
        if (i > begin) CHECK(col[100 * line + i] > col[100 * line + i - 1]);
      }
    }
}
