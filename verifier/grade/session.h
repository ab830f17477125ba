// Inside grade/: one grading's parts and what it has found so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verifier/compare/compare.h"
#include "verifier/device/device.h"
#include "verifier/grade/compile.h"
#include "verifier/grade/grade.h"
#include "verifier/grade/workspace.h"
#include "verifier/measure/measure.h"
#include "verifier/process/process.h"
#include "verifier/report/report.h"

namespace kbench::grade {

// A call whose outputs were kept for comparison after the worker's death.
struct Kept {
  std::size_t shape = 0;
  int repetition = 0;  // in the order of the run; -1 for an odd shape's
  std::uint64_t seed = 0;
  bool scored = false;
  const Snapshot* snapshot = nullptr;
};

// timed_odd: with the odd shapes behind the others. observed: nothing is scored, the kernels of each call are counted.
enum class RunKind : std::uint8_t { timed, timed_odd, observed };

// What an observed worker said of one call. Made in the submission's process: see docs/threats.md for what it proves.
struct ObservedCall {
  std::string where;
  int kernels = 0;
  std::string names;  // of kernels, with how often each
};

// One worker run, as it goes into details.json.
struct RunRecord {
  int run = 0;  // index of its uid; the first is 0
  RunKind kind = RunKind::timed;
  std::string name() const { return kind == RunKind::observed ? "observed run" : "run " + std::to_string(run + 1); }
  std::vector<ObservedCall> calls;  // of an observed run
  std::vector<measure::Sample> samples;
  std::vector<measure::Keys> keys;     // of each sample
  std::vector<std::uint8_t> repeated;  // whether a sample's outputs had been seen before
  std::vector<Kept> kept, odd;
  std::map<std::size_t, std::string> odd_failures;  // shape -> why, when the worker did not get through it
  std::string log;                                  // the worker's output, escaped
  std::vector<std::string> complaints;              // that void it
  measure::RunResult result;
  int compared = 0;
  double max_error = 0, rms_error = 0;  // largest seen, in the rule's units
};

struct OddResult {
  Shape shape;
  bool passed = false;
  std::string reason;
};

// Memory for kept outputs, made before the first worker.
struct SnapshotPool {
  std::vector<std::vector<Snapshot>> sets;  // [shape]
  std::vector<std::vector<Snapshot>>
      extras;  // [shape]: for calls that are not compared; the second when the first holds a repeat
};

struct Session {
  explicit Session(const Options& asked) : options(asked) {}

  const Options& options;
  Problem problem;  // spread over its GPUs
  std::unique_ptr<report::Reporter> reporter;
  std::unique_ptr<verify::Device> device;
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<ScratchFolder> scratch;  // private
  verify::Device::Reference* reference = nullptr;
  std::vector<std::unique_ptr<compare::Rule>> rules;  // by tensor; null for inputs
  std::vector<Source> artefact;
  CompileResult compiled;  // not ok when the artefact came as it is
  std::string language;

  measure::Secrets secrets;
  std::size_t graded = 0;             // the first so many of the workspace's shapes; odd ones follow
  std::vector<double> work;           // credited, by graded shape
  std::vector<double> check_seconds;  // of one comparison, by graded shape
  std::vector<int> compared;          // a run, by graded shape
  std::vector<measure::Calibration> calibrations;
  std::vector<measure::RunPlan> plans;
  std::vector<measure::RunPlan> odd_plans;  // as many as shapes beyond the graded ones: prepare and one repetition each
  SnapshotPool pool;
  std::vector<std::set<std::uint64_t>> seen;  // hashes of outputs, by shape
  double measure_seconds_left = 0;

  std::optional<RunRecord> observed;
  std::vector<RunRecord> runs;
  std::vector<RunRecord> voided;
  std::vector<OddResult> odd;
  std::vector<std::string> complaints;  // complaints that passed
  std::optional<double> peak;           // of the device for the task's bound, in the metric's unit
  double canary_before_us = 0, canary_after_us = 0;
  std::map<std::string, double> seconds;  // by phase; "measure: what" is a part of measure

  bool enforces_conditions() const {
    return options.conditions.empty() ? device->facts().kind == "cuda" : options.conditions == "enforce";
  }
  measure::Window window() const {
    return device->facts().kind == "cuda" ? measure::Window::stamped : measure::Window::stopped;
  }
  void note(const std::vector<std::string>& complaints);
  bool python() const { return language == "python"; }
};

// The stretch of time that belongs to a phase, told to the listener.
class Phase {
 public:
  Phase(Session& session, const char* name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  Session& session_;
  const char* name_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// What a call's end says of the submission; where: "shape large, prepare".
Finding finding_of(process::WorkerProcess& worker, verify::Ended ended, const std::string& where, double deadline_s);

// Of the workers that calibrate and check; see grade/trusted.h.
std::string trusted_library(const Session& session);
// Overheads by trusted workers, one a variant. Throws GradeFault.
void calibrate(Session& session);
// Where the task's rules limit the kernels of a call and the device has kernels: an untimed run in which they are
// counted. Throws Finding, also for wrong outputs, and GradeFault("observer") when counting does not work here.
void observe(Session& session);
// Throws Finding(rule_violation) for the first call with more kernels, or none.
void judge_kernels(const std::vector<ObservedCall>& calls, int kernels_max);
// One life of a worker through all planned repetitions; the worker is dead and its traces are wiped when it returns.
// Nothing is compared. Throws Finding.
RunRecord run_worker(Session& session, int run, const measure::RunPlan& plan, RunKind kind);
// What was kept against the reference. Throws Finding at the first wrong element of a graded shape.
void check_run(Session& session, RunRecord& run);
// One comparison of the reference with itself a shape: its time, and whether reference and rules work at all. Throws
// GradeFault.
void time_checks(Session& session);
// Waits until the device has nothing to complain of. Throws GradeFault("conditions") when that takes too long.
void await_conditions(Session& session);

nlohmann::json details_of(const Session& session);
void print_table(const Session& session, const std::string& verdict, const std::string& reason,
                 const measure::Result& result);

}  // namespace kbench::grade
