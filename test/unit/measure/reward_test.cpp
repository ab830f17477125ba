#include <catch2/catch.hpp>
#include <limits>

#include "verifier/measure/measure.h"

using namespace kbench::measure;
using kbench::Metric;

namespace {
std::vector<Sample> samples_of(int shape, std::vector<double> times_us) {
  std::vector<Sample> samples;
  for (int i = 0; i < kUnscored; ++i) {
    Sample warm;
    warm.shape = shape, warm.time_us = 1e9;
    samples.push_back(warm);
  }
  for (const double time_us : times_us) {
    Sample sample;
    sample.shape = shape, sample.scored = true, sample.time_us = time_us;
    samples.push_back(sample);
  }
  return samples;
}
}  // namespace

TEST_CASE("measure: a run's reward is all work over the sum of medians, not a mean of rates") {
  std::vector<Sample> samples = samples_of(0, {900, 1000, 1100});
  const auto more = samples_of(1, {2900, 3000, 9000});
  samples.insert(samples.end(), more.begin(), more.end());
  const RunResult run = reward_of(samples, {2e9, 6e9}, Metric::tflops);
  CHECK(run.reward == Approx(8e9 / 4e-3 / 1e12));
  REQUIRE(run.shapes.size() == 2);
  CHECK(run.shapes[1].median == 3000);
  CHECK(reward_of(samples, {2e9, 6e9}, Metric::gbytes).reward == Approx(2000));
}

TEST_CASE("measure: a median that cannot be is a fault, never a reward") {
  const double time_us = GENERATE(0.0, -1.0, std::numeric_limits<double>::infinity());
  CHECK_THROWS_AS(reward_of(samples_of(0, {time_us, time_us, time_us}), {1e9}, Metric::tflops), NotCredible);
}

TEST_CASE("measure: the result is the median of the runs with their range") {
  const Result result = result_of({5, 1, 4, 2, 3});
  CHECK(result.reward == 3);
  CHECK(result.low == 1);
  CHECK(result.high == 5);
}

TEST_CASE("measure: above the peak only where a peak is known and guarded") {
  kbench::verify::Facts facts;
  facts.units = 132, facts.clock_mhz_max = 1980, facts.memory_clock_mhz_max = 3201;
  const Peaks peaks{{{"bf16", 4096}}, 6144 / 8.0 * 2};
  const auto bf16 = peak_of(facts, peaks, "bf16");
  REQUIRE(bf16);
  CHECK(*bf16 == Approx(1070.5).epsilon(1e-3));
  CHECK(*peak_of(facts, peaks, "memory") == Approx(4917).epsilon(1e-3));
  CHECK(!peak_of(facts, peaks, "fp3"));
  CHECK(!peak_of(kbench::verify::Facts{}, peaks, "bf16"));
  CHECK(!above_peak(*bf16 * 1.02, bf16, 1));
  CHECK(above_peak(*bf16 * 1.0201, bf16, 1));
  CHECK(!above_peak(*bf16 * 2, bf16, 2));
  CHECK(!above_peak(1e9, bf16, 0));
  CHECK(!above_peak(1e9, std::nullopt, 1));
}
