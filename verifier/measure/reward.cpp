#include <algorithm>
#include <cmath>

#include "verifier/measure/measure.h"

namespace kbench::measure {

RunResult reward_of(std::span<const Sample> samples, const std::vector<double>& work, Metric metric) {
  RunResult result;
  double sum_work = 0, sum_us = 0;
  for (std::size_t shape = 0; shape < work.size(); ++shape) {
    std::vector<double> times;
    for (const Sample& sample : samples) {
      if (sample.scored && sample.shape == static_cast<int>(shape)) times.push_back(sample.time_us);
    }
    result.shapes.push_back(summarise(times));
    const double time_us = result.shapes.back().median;
    if (!std::isfinite(time_us) || time_us <= 0) {
      throw NotCredible("the median time of shape " + std::to_string(shape) + " is " + std::to_string(time_us) + " us");
    }
    sum_work += work[shape];
    sum_us += time_us;
  }
  const double unit = metric == Metric::tflops ? 1e12 : 1e9;
  result.reward = sum_work / (sum_us * 1e-6) / unit;
  if (!std::isfinite(result.reward)) throw NotCredible("a reward that is not finite");
  return result;
}

Result result_of(const std::vector<double>& rewards) {
  const Summary summary = summarise(rewards);
  return {summary.median, summary.min, summary.max};
}

std::optional<double> peak_of(const verify::Facts& facts, const Peaks& peaks, const std::string& bound) {
  if (bound == "memory") {
    const double peak = peaks.memory_bytes * facts.memory_clock_mhz_max * 1e6 / 1e9;
    return peak > 0 ? std::optional(peak) : std::nullopt;
  }
  const auto rate = peaks.operations.find(bound);
  if (rate == peaks.operations.end()) return std::nullopt;
  const double peak = facts.units * facts.clock_mhz_max * 1e6 * rate->second / 1e12;
  return peak > 0 ? std::optional(peak) : std::nullopt;
}

bool above_peak(double value, std::optional<double> peak, double factor) {
  return peak && factor > 0 && value > *peak * factor * kPeakTolerance;
}

}  // namespace kbench::measure
