#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "verifier/measure/measure.h"

using namespace kbench::measure;
using kbench::Problem;

namespace {
struct Counting final : Secrets {
  std::uint64_t state = 1;
  std::uint64_t next() override {  // splitmix64: fixed, so that a failing test repeats
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};
}  // namespace

TEST_CASE("measure: secrets are fresh and below is uniform") {
  Secrets secrets;
  CHECK(secrets.next() != secrets.next());
  Counting fixed;
  int counts[3] = {};
  for (int i = 0; i < 30'000; ++i) ++counts[fixed.below(3)];
  for (const int count : counts) CHECK(std::abs(count - 10'000) < 400);
  CHECK(fixed.below(1) == 0);
}

TEST_CASE("measure: a run has every shape's repetitions, the first of each unscored, no key twice") {
  Secrets secrets;
  const RunPlan plan = draw_run(secrets, 3, {kRepetitions, 2, 5});
  REQUIRE(plan.repetitions.size() == 3 * kRepetitions);
  REQUIRE(plan.prepare.size() == 3);
  int count[3] = {}, scored[3] = {}, compared[3] = {};
  std::set<std::uint64_t> keys;
  for (const Keys& k : plan.prepare) keys.insert({k.seed, k.poison, k.order});
  for (const Planned& p : plan.repetitions) {
    CHECK(p.scored == (count[p.shape] >= kUnscored));
    ++count[p.shape];
    scored[p.shape] += p.scored;
    compared[p.shape] += p.compared;
    keys.insert({p.keys.seed, p.keys.poison, p.keys.order});
  }
  for (int shape = 0; shape < 3; ++shape) {
    CHECK(count[shape] == kRepetitions);
    CHECK(scored[shape] == kScored);
  }
  CHECK(compared[0] == kRepetitions);
  CHECK(compared[1] == 2);
  CHECK(compared[2] == 5);
  CHECK(keys.size() == 3 * (3 + 3 * kRepetitions));
}

TEST_CASE("measure: order and comparisons differ from draw to draw, every scored repetition may be the compared one") {
  Counting secrets;
  std::set<std::vector<int>> orders;
  std::vector<int> compared(kRepetitions, 0);
  for (int draw = 0; draw < 900; ++draw) {
    const RunPlan plan = draw_run(secrets, 2, {2, 2});
    std::vector<int> order;
    int nth = 0;
    for (const Planned& p : plan.repetitions) {
      order.push_back(p.shape);
      if (p.shape == 0) compared[static_cast<std::size_t>(nth++)] += p.compared;
    }
    orders.insert(order);
  }
  CHECK(orders.size() > 890);
  for (int nth = 0; nth < kRepetitions; ++nth)
    CHECK(std::abs(compared[static_cast<std::size_t>(nth)] - (nth < kUnscored ? 0 : 120)) < 50);  // 900 x 2 / 15
}

TEST_CASE("measure: all repetitions are compared while the budget lasts, never fewer than four") {
  const std::vector<std::uint64_t> small = {1, 1};
  const double edge = kCheckBudgetSeconds / (kWorkerRuns * kRepetitions);
  CHECK(compared_per_run({edge / 2, edge / 2}, small, 1 << 20) == std::vector<int>(2, kRepetitions));
  CHECK(compared_per_run({edge / 2, edge / 2 * 1.01}, small, 1 << 20) == std::vector<int>(2, kRepetitions - 1));
  CHECK(compared_per_run({edge, edge}, small, 1 << 20) == std::vector<int>(2, kRepetitions / 2));
  CHECK(compared_per_run({50, 50}, small, 1 << 20) == std::vector<int>(2, kComparedMin));
}

TEST_CASE("measure: work left out of half the scored calls is seen in three runs, all but surely") {
  Secrets secrets;
  int missed = 0;
  constexpr int kDraws = 20'000;
  for (int draw = 0; draw < kDraws; ++draw) {
    const RunPlan plan = draw_run(secrets, 1, {kComparedMin});
    int left_out = 0;  // of the first scored ones: which ones is all the same, the draw is secret
    bool seen = false;
    for (const Planned& p : plan.repetitions)
      if (p.scored && left_out < kScored / 2 + 1) ++left_out, seen = seen || p.compared;
    missed += !seen;
  }
  const double run = static_cast<double>(missed) / kDraws;
  CHECK(run < 0.04);  // 35 of 1,365
  CHECK(run * run * run < 1e-4);
}

TEST_CASE("measure: memory bounds the snapshots kept") {
  CHECK(compared_per_run({0.001}, {100}, 1800) == std::vector<int>(1, kRepetitions));
  CHECK(compared_per_run({0.001}, {100}, 1799) == std::vector<int>(1, kRepetitions - 1));
  CHECK(compared_per_run({0.001}, {100}, 200) == std::vector<int>(1, kComparedLeast));
  CHECK_THROWS_AS(compared_per_run({0.001}, {100}, 199), NotCredible);
}

TEST_CASE("measure: odd shapes come from their ranges, other dims from the first test shape") {
  Counting secrets;
  Problem problem{};
  problem.dims = {"M", "N"};
  problem.derived = {{"H", "N/3"}};  // exact only for a third of the draws
  problem.test = {{"test", {{"M", 7}, {"N", 12}, {"H", 4}}}};
  CHECK(!draw_odd(secrets, problem, 0));
  problem.odd["N"] = {30, 41};
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    const auto shape = draw_odd(secrets, problem, 1);
    REQUIRE(shape);
    CHECK(shape->name == "odd2");
    CHECK(shape->dims.at("M") == 7);
    CHECK(shape->dims.at("H") * 3 == shape->dims.at("N"));
    seen.insert(shape->dims.at("N"));
  }
  CHECK(seen == std::set<std::int64_t>{30, 33, 36, 39});
  problem.odd["N"] = {31, 32};  // none divides
  CHECK(!draw_odd(secrets, problem, 0));
}
