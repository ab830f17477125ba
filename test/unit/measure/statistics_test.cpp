#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "verifier/measure/measure.h"

using namespace kbench::measure;
using kbench::verify::Bounds;
using kbench::verify::Repetition;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Repetition window(double window_us, double worker_us, double stretch_us = 300, double start_us = 150) {
  Repetition r;
  r.window_us = window_us, r.worker_us = worker_us, r.stretch_us = stretch_us, r.start_us = start_us,
  r.quiescence_us = 12;
  return r;
}
// Chance that the population's median lies within order statistics (low, high) of n, by summing the binomial directly.
double coverage(int n, int low, int high) {
  double sum = 0;
  for (int k = low; k < high; ++k) {
    double c = std::pow(0.5, n);
    for (int i = 0; i < k; ++i) c *= static_cast<double>(n - i) / (i + 1);
    sum += c;
  }
  return sum;
}
}  // namespace

TEST_CASE("measure: median of odd, even, unsorted and infinite") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({kInf, 1, 2}) == 2);
  CHECK(median({kInf, kInf, 2}) == kInf);
  CHECK_THROWS_AS(median({}), std::invalid_argument);
}

TEST_CASE("measure: the interval's ranks are the narrowest with the coverage") {
  CHECK(interval_ranks(15, 0.95) == std::pair{4, 12});   // 96.5 %
  CHECK(interval_ranks(30, 0.95) == std::pair{10, 21});  // 95.7 %
  CHECK(interval_ranks(100, 0.95) == std::pair{40, 61});
  CHECK(interval_ranks(5, 0.95) == std::pair{1, 5});  // 93.75 % is all that five give
  CHECK(interval_ranks(1, 0.95) == std::pair{1, 1});
  for (int n = 6; n <= 120; ++n) {
    const auto [low, high] = interval_ranks(n, 0.95);
    CHECK(coverage(n, low, high) >= 0.95);
    if (low + 1 < high - 1) CHECK(coverage(n, low + 1, high - 1) < 0.95);
  }
}

TEST_CASE("measure: a summary, with what counts as infinitely slow") {
  std::vector<double> values;
  for (int i = 1; i <= 15; ++i) values.push_back(i);
  Summary s = summarise(values);
  CHECK(s.count == 15);
  CHECK(s.median == 8);
  CHECK(s.low == 4);
  CHECK(s.high == 12);
  CHECK(s.mad == 4);
  CHECK(s.min == 1);
  CHECK(s.max == 15);
  values[0] = kInf;  // a void never helps: the median can only rise
  s = summarise(values);
  CHECK(s.median == 9);
  CHECK(s.max == kInf);
  CHECK(std::isfinite(s.mad));
  CHECK(summarise({kInf, kInf}).median == kInf);
  CHECK_THROWS_AS(summarise({}), std::invalid_argument);
}

TEST_CASE("measure: the smaller overhead is subtracted, the first repetitions are not counted") {
  std::vector<Repetition> empty(3, window(9000, 0, 9000, 9000)), writing = empty;
  for (int i = 0; i < 15; ++i) {
    empty.push_back(window(300 + i % 3, 1, 310, 150));
    writing.push_back(window(500 + i % 3, 196, 312, 155));
  }
  const Calibration c = calibrate(empty, writing, Window::stamped);
  CHECK(c.empty_us == 301);
  CHECK(c.writing_us == 306);
  CHECK(c.overhead_us == 301);
  CHECK(c.start_us == 155);
  CHECK(c.stretch_us == 311);
}

TEST_CASE("measure: what a busy machine adds to trusted windows is not subtracted where the worker is stopped") {
  // From A to the answer 200 us, then 100 to the stop; a neighbour adds up to two milliseconds to most of them.
  std::vector<Repetition> empty(3, window(9000, 0, 9000, 100)), writing = empty;
  for (int i = 0; i < 15; ++i) {
    empty.push_back(window(300 + (i == 7 ? 0 : 1700 + i), 1, 310, 100 + (i == 7 ? 0 : 1700 + i)));
    writing.push_back(window(2500, 196, 312, 1900));
  }
  const Calibration busy = calibrate(empty, writing, Window::stopped);
  CHECK(busy.overhead_us == 300);
  CHECK(busy.answer_us == 200);
  CHECK(busy.floor_us == busy.empty_us - 300);
  CHECK(calibrate(empty, writing, Window::stamped).overhead_us == busy.empty_us);
  // 1500 us of work, while nobody is disturbed: as long as it was, whatever its call says of itself.
  const Bounds bounds{kInf, kInf, kInf};
  CHECK(judge(window(1800 + 600, 0, 300, 100), busy, bounds, Window::stopped).time_us == 2100);
  Calibration quiet = busy;
  quiet.floor_us = 1;
  CHECK(judge(window(1800, 0, 300, 100), quiet, bounds, Window::stopped).time_us == 1500);
  // A stop that took less than any trusted one: what was seen until the answer is left.
  CHECK(judge(window(1750, 0, 300, 50), quiet, bounds, Window::stopped).time_us == 1500);
}

TEST_CASE("measure: a time is never nothing, and never shorter than what calibration can tell") {
  Calibration calibration;
  calibration.overhead_us = 300, calibration.stretch_us = 300, calibration.start_us = 150;
  calibration.answer_us = 150, calibration.floor_us = 7;
  const Bounds bounds{500, 1.25, 50};
  for (const Window kind : {Window::stamped, Window::stopped}) {
    CHECK(judge(window(290, 0), calibration, bounds, kind).time_us == 7);
    CHECK(judge(window(307, 0), calibration, bounds, kind).time_us == 7);
    CHECK(judge(window(308, 0), calibration, bounds, kind).time_us == 8);
  }
  const std::vector<Repetition> same(18, window(300, 1));
  CHECK(calibrate(same, same, Window::stopped).floor_us == kTimeFloorUs);
}

TEST_CASE("measure: an overhead that cannot be is a fault") {
  const std::vector<Repetition> good(18, window(300, 1)), negative(18, window(10, 20)), nan(18, window(kNan, 1)),
      few(3, window(1, 0));
  CHECK_THROWS_AS(calibrate(good, negative, Window::stamped), NotCredible);
  CHECK_THROWS_AS(calibrate(nan, good, Window::stamped), NotCredible);
  CHECK_THROWS_AS(calibrate(few, good, Window::stamped), std::invalid_argument);
}

TEST_CASE("measure: each bound at its edge") {
  Calibration calibration;
  calibration.overhead_us = 300, calibration.stretch_us = 200, calibration.start_us = 150;
  const Bounds bounds{500, 1.25, 50};
  Repetition r = window(1300, 0, 250, 200);
  r.quiescence_us = 500;
  CHECK(judge(r, calibration, bounds, Window::stamped).breach == Breach::none);
  CHECK(judge(r, calibration, bounds, Window::stamped).time_us == 1000);
  SECTION("quiescence") {
    r.quiescence_us = GENERATE(500.1, kNan, kInf);
    CHECK(judge(r, calibration, bounds, Window::stamped).breach == Breach::quiescence);
  }
  SECTION("stretch") {
    r.stretch_us = GENERATE(250.1, kNan);
    CHECK(judge(r, calibration, bounds, Window::stamped).breach == Breach::stretch);
  }
  SECTION("start") {
    r.start_us = GENERATE(200.1, kNan);
    CHECK(judge(r, calibration, bounds, Window::stamped).breach == Breach::early_done);
    CHECK(judge(r, calibration, bounds, Window::stamped).time_us == kInf);
  }
  SECTION("start, behind a long window: a hundredth of it") {
    r = window(20'300, 0, 250, 353);
    CHECK(judge(r, calibration, bounds, Window::stamped).breach == Breach::none);
    r = window(20'300, 0, 250, 353.1);
    CHECK(judge(r, calibration, bounds, Window::stamped).breach == Breach::early_done);
  }
}

TEST_CASE("measure: what the worker says can only make it slower") {
  Calibration calibration;
  calibration.overhead_us = 300, calibration.stretch_us = 300, calibration.start_us = 150;
  calibration.answer_us = 150;
  const Bounds bounds{500, 1.25, 50};
  CHECK(judge(window(290, 40), calibration, bounds, Window::stopped).time_us == 40);
  CHECK(judge(window(400, 40), calibration, bounds, Window::stopped).time_us == 100);
  CHECK(judge(window(400, 140), calibration, bounds, Window::stopped).time_us == 140);
  CHECK(judge(window(400, 140, 9999), calibration, bounds, Window::stopped).time_us == kInf);
}

TEST_CASE("measure: a tenth of the repetitions may be void, not more") {
  std::vector<Sample> samples(40);
  for (std::size_t i = 0; i < 4; ++i) samples[i].breach = Breach::stretch;
  CHECK(!too_many_void(samples));
  samples[4].breach = Breach::early_done;
  CHECK(too_many_void(samples));
}
