#include <algorithm>
#include <cmath>
#include <limits>

#include "verifier/measure/measure.h"

namespace kbench::measure {
namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  if (n % 2 == 1) return sorted[n / 2];
  const double low = sorted[n / 2 - 1], high = sorted[n / 2];
  return low == high ? low : low + (high - low) / 2;  // infinities are equal, their difference is not a number
}

std::vector<double> each(std::span<const verify::Repetition> repetitions, double (*value)(const verify::Repetition&)) {
  std::vector<double> values;
  for (std::size_t i = kUnscored; i < repetitions.size(); ++i) values.push_back(value(repetitions[i]));
  return values;
}

double window_us(const verify::Repetition& r) { return r.window_us; }
double worker_us(const verify::Repetition& r) { return r.worker_us; }
double answer_us(const verify::Repetition& r) { return r.window_us - r.start_us; }  // start: from the answer to B
double start_us(const verify::Repetition& r) { return r.start_us; }
double stretch_us(const verify::Repetition& r) { return r.stretch_us; }

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("the median of nothing");
  std::sort(values.begin(), values.end());
  return median_of_sorted(values);
}

std::pair<int, int> interval_ranks(int n, double coverage) {
  // P(x(k) <= median <= x(n+1-k)) = 1 - 2 P(Binomial(n, 1/2) < k).
  double probability = std::pow(0.5, n), below = 0;
  int k = 0;
  while (k < n / 2 && 1 - 2 * (below + probability) >= coverage) {
    below += probability;
    probability *= static_cast<double>(n - k) / (k + 1);
    ++k;
  }
  return k == 0 ? std::pair{1, n} : std::pair{k, n + 1 - k};
}

Summary summarise(const std::vector<double>& values) {
  if (values.empty()) throw std::invalid_argument("the summary of nothing");
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  Summary summary;
  summary.count = static_cast<int>(sorted.size());
  summary.median = median_of_sorted(sorted);
  const auto [low, high] = interval_ranks(summary.count, kIntervalCoverage);
  summary.low = sorted[static_cast<std::size_t>(low - 1)];
  summary.high = sorted[static_cast<std::size_t>(high - 1)];
  summary.min = sorted.front();
  summary.max = sorted.back();
  std::vector<double> deviations;
  for (const double value : sorted)
    deviations.push_back(value == summary.median ? 0 : std::abs(value - summary.median));
  summary.mad = median(deviations);
  return summary;
}

Calibration calibrate(std::span<const verify::Repetition> empty, std::span<const verify::Repetition> writing,
                      Window window) {
  if (empty.size() <= kUnscored || writing.size() <= kUnscored)
    throw std::invalid_argument("too few repetitions to calibrate");
  Calibration result;
  // What both variants' calls take beside a kernel (launch, synchronisation) is overhead; the rest of the writing one's
  // is its kernel.
  const double bare_call_us = median(each(empty, worker_us));
  std::vector<double> left, answers = each(empty, answer_us);
  for (std::size_t i = kUnscored; i < writing.size(); ++i) {
    const double kernel_us = std::max(0.0, writing[i].worker_us - bare_call_us);
    left.push_back(writing[i].window_us - kernel_us);
    answers.push_back(answer_us(writing[i]) - kernel_us);
  }
  result.empty_us = median(each(empty, window_us));
  result.writing_us = median(left);
  result.overhead_us = std::min(result.empty_us, result.writing_us);
  result.floor_us = kTimeFloorUs;
  if (window == Window::stopped) {
    std::vector<double> windows = each(empty, window_us);
    windows.insert(windows.end(), left.begin(), left.end());
    const double typical_us = result.overhead_us;
    result.overhead_us = *std::min_element(windows.begin(), windows.end());
    result.answer_us = *std::min_element(answers.begin(), answers.end());
    result.floor_us = std::max(kTimeFloorUs, typical_us - result.overhead_us);
  }
  if (!std::isfinite(result.empty_us) || !std::isfinite(result.writing_us) || result.overhead_us < 0) {
    throw NotCredible("the calibrated overhead is " + std::to_string(result.overhead_us) + " us");
  }
  std::vector<double> stretches = each(empty, stretch_us);
  const std::vector<double> more = each(writing, stretch_us);
  stretches.insert(stretches.end(), more.begin(), more.end());
  result.stretch_us = median(stretches);
  result.start_us = std::max(median(each(empty, start_us)), median(each(writing, start_us)));
  return result;
}

std::string_view name_of(Breach breach) {
  switch (breach) {
    case Breach::none:
      return "none";
    case Breach::quiescence:
      return "quiescence";
    case Breach::stretch:
      return "stretch";
    case Breach::early_done:
      return "early_done";
  }
  return "?";
}

// Each comparison is written so that a NaN breaks it.
Breach breach_of(const verify::Repetition& repetition, const Calibration& calibration, const verify::Bounds& bounds) {
  if (!(repetition.quiescence_us <= bounds.quiescence_us_max)) return Breach::quiescence;
  if (!(repetition.stretch_us <= calibration.stretch_us * bounds.stretch_ratio_max)) return Breach::stretch;
  // Behind a kernel of tens of milliseconds the switch between contexts takes longer; what an early done could hide
  // there is a hundredth of the window at most, and B waits for it all the same.
  const double excess_us_max = std::max(bounds.start_excess_us_max, kStartExcessShare * repetition.window_us);
  if (!(repetition.start_us <= calibration.start_us + excess_us_max)) return Breach::early_done;
  return Breach::none;
}

Sample judge(const verify::Repetition& repetition, const Calibration& calibration, const verify::Bounds& bounds,
             Window window) {
  Sample sample;
  sample.evidence = repetition;
  sample.breach = breach_of(repetition, calibration, bounds);
  sample.time_us = std::max(repetition.window_us - calibration.overhead_us, calibration.floor_us);
  if (window == Window::stopped)
    sample.time_us = std::max({sample.time_us, answer_us(repetition) - calibration.answer_us, repetition.worker_us});
  if (sample.breach != Breach::none) sample.time_us = std::numeric_limits<double>::infinity();
  return sample;
}

bool too_many_void(std::span<const Sample> samples) {
  const auto broken =
      std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return s.breach != Breach::none; });
  return static_cast<double>(broken) > kVoidShareMax * static_cast<double>(samples.size());
}

}  // namespace kbench::measure
