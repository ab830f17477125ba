// What a measurement means: the schedule before it, the judgement of its evidence, the numbers after it. No device, no
// clock, no I/O; every constant of the protocol's statistics is here. Times are in us, work in flops or bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "verifier/device/device.h"
#include "verifier/problem/problem.h"

namespace kbench::measure {

inline constexpr int kWorkerRuns = 5;  // fresh processes; each yields one reward, the result is their median
inline constexpr int kUnscored =
    3;  // first repetitions of a shape in a run: checked, not scored (clocks, caches, paging)
inline constexpr int kScored = 15;
inline constexpr int kRepetitions = kUnscored + kScored;
inline constexpr int kCalibrationRepetitions = 18;  // a shape and trusted worker; as many of them unscored as above
inline constexpr double kVoidShareMax = 0.10;       // of a worker run's repetitions
inline constexpr double kStartExcessShare = 0.01;   // of a window: a long one's snapshot may start that much later too
inline constexpr int kHardwareVoidsMax = 2;         // worker runs that hardware slowdown may void, a grading
inline constexpr double kCheckBudgetSeconds = 4;    // of references and comparisons, a grading
inline constexpr int kComparedMin = 4;              // a shape and worker run, whatever the reference costs
inline constexpr int kComparedLeast = 2;            // where memory holds no more
inline constexpr double kTimeFloorUs = 1;           // the clocks tell no shorter times apart
inline constexpr double kIntervalCoverage = 0.95;   // of the order-statistics interval
inline constexpr double kPeakTolerance = 1.02;
inline constexpr int kOddShapes = 2;  // drawn a grading
inline constexpr int kOddDraws = 64;  // attempts to find dims that the definition admits

// --- Statistics
// -------------------------------------------------------------------------------------------------------------------

struct Summary {
  int count = 0;
  double median = 0;
  double low = 0, high = 0;  // distribution-free interval of the median from order statistics, at least
                             // kIntervalCoverage where n allows
  double mad = 0;            // median absolute deviation, unscaled
  double min = 0, max = 0;
};
double median(std::vector<double> values);  // throws std::invalid_argument when empty; infinities sort last
Summary summarise(const std::vector<double>& values);
// Ranks (from 1) of the narrowest symmetric interval with the coverage; (1, n) where n is too small for it.
std::pair<int, int> interval_ranks(int n, double coverage);

// --- Calibration
// ------------------------------------------------------------------------------------------------------------------

// What a trusted worker costs at one shape: its windows less what its own kernel took. Both variants launch one kernel,
// the empty one's does nothing.
//
// A window has noise on both ends where the worker is stopped by signals. What is subtracted there is the least that a
// trusted window ever took: so a busy machine makes a time longer, never shorter than it was.
enum class Window : std::uint8_t { stamped, stopped };  // by the GPU | between two stops of the worker
struct Calibration {
  double empty_us = 0, writing_us = 0;  // medians of both variants
  double overhead_us = 0;               // subtracted from every window: the smaller of them; stopped: the least of all
  double answer_us = 0;   // stopped: the least from A until the worker's answer was seen, subtracted from that stretch
  double floor_us = 0;    // no shorter time is believed: it could not be told from the noise of the trusted windows
  double stretch_us = 0;  // quiescence to A, median
  double start_us = 0;    // launch of the snapshot to its start: the larger of the variants' medians
};
struct NotCredible : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // an infrastructure fault
// The first kUnscored of each are dropped. Throws NotCredible for overheads that are not finite or negative.
Calibration calibrate(std::span<const verify::Repetition> empty, std::span<const verify::Repetition> writing,
                      Window window);

// --- Judgement
// --------------------------------------------------------------------------------------------------------------------

enum class Breach : std::uint8_t { none, quiescence, stretch, early_done };
std::string_view name_of(Breach breach);
Breach breach_of(const verify::Repetition& repetition, const Calibration& calibration, const verify::Bounds& bounds);

struct Sample {
  int shape = 0;
  bool scored = false, compared = false;
  Breach breach = Breach::none;
  double time_us = 0;  // infinite when a rule was broken
  verify::Repetition evidence;
};
// window - overhead, at least the calibration's floor, or infinity. A stopped worker's is no less than what the
// verifier saw itself, from A to the worker's answer, and no less than the worker says its call took: lying about that
// only makes it slower.
Sample judge(const verify::Repetition& repetition, const Calibration& calibration, const verify::Bounds& bounds,
             Window window);

bool too_many_void(std::span<const Sample> samples);  // more than kVoidShareMax

// --- Schedule
// ---------------------------------------------------------------------------------------------------------------------

// Secret numbers. The default is getrandom(2); tests bring their own.
class Secrets {
 public:
  virtual ~Secrets() = default;
  virtual std::uint64_t next();
  std::uint64_t below(std::uint64_t bound);  // uniform
};

struct Keys {
  std::uint64_t seed = 0, poison = 0, order = 0;
};
Keys draw_keys(Secrets& secrets);

struct Planned {
  int shape = 0;
  bool scored = false, compared = false;
  Keys keys;
};
struct RunPlan {
  std::vector<Keys> prepare;         // one a shape
  std::vector<Planned> repetitions;  // shapes interleaved in secret order
};
// `compared` says how many repetitions a shape and run are compared, see compared_per_run: scored ones as far as they
// go. Whoever leaves out the work of half of its scored calls, in a run and in two others to make the median, is not
// seen once in 50,000 times with four of them, once in 40 with two of all.
RunPlan draw_run(Secrets& secrets, int shapes, const std::vector<int>& compared);

// How many of each shape's kRepetitions are compared in each run: all while one check of each shape costs few enough
// seconds, else as many as the budget admits, equally for all shapes, at least kComparedMin. The snapshots of
// one run must fit into bytes_free, which may leave fewer, at least kComparedLeast. Throws NotCredible when even those
// do not fit.
std::vector<int> compared_per_run(const std::vector<double>& check_seconds,
                                  const std::vector<std::uint64_t>& snapshot_bytes, std::uint64_t bytes_free);

// Dims drawn from the problem's odd ranges; nullopt when it has none or no draw was admissible.
std::optional<Shape> draw_odd(Secrets& secrets, const Problem& problem, int index);

// --- Reward
// -----------------------------------------------------------------------------------------------------------------------

struct RunResult {
  double reward = 0;            // TFLOP/s or GB/s
  std::vector<Summary> shapes;  // of the scored times
};
// Credited work of all shapes over the sum of their medians. Throws NotCredible for a median that is not finite or not
// positive.
RunResult reward_of(std::span<const Sample> samples, const std::vector<double>& work, Metric metric);

struct Result {
  double reward = 0, low = 0, high = 0;
};
Result result_of(const std::vector<double>& rewards);  // median, min, max

// What a GPU can do at most: operations per clock and unit by kind ("bf16"), bytes a memory clock.
struct Peaks {
  std::map<std::string, double> operations;
  double memory_bytes = 0;
};
// In the metric's unit; nullopt when it is not known for this bound or device.
std::optional<double> peak_of(const verify::Facts& facts, const Peaks& peaks, const std::string& bound);
// Whether a value cannot be a measurement of the credited work. factor: the problem's; 0 means no guard.
bool above_peak(double value, std::optional<double> peak, double factor);

}  // namespace kbench::measure
