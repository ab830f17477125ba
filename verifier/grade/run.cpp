#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "kbench/events.h"
#include "verifier/grade/session.h"
#include "verifier/grade/worker.h"

namespace kbench::grade {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kProgressPeriod = std::chrono::seconds(1);  // the sender must not run beside every window

constexpr std::size_t kComplaintsMax = 32;  // noted

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One run, as it goes.
class Run {
 public:
  Run(Session& session, int run, const measure::RunPlan& plan, RunKind kind)
      : session_(session), work_(*session.workspace), plan_(plan), used_(session.workspace->shapes().size()) {
    record_.run = run;
    record_.kind = kind;
  }

  RunRecord measure() {
    const bool python = session_.python();
    protocol::Setup setup = work_.setup();
    setup.observed = record_.kind == RunKind::observed ? 1 : 0;
    const auto start = Clock::now();
    RunningWorker worker(session_, session_.options.uid_base + kUidFirstRun + static_cast<uid_t>(record_.run),
                         python ? Host::python : Host::native, session_.artefact, "", setup);
    const Deadlines& deadlines = session_.options.deadlines;
    worker.await_ready(python ? deadlines.load_python : deadlines.load);
    session_.seconds["measure: start workers"] += seconds_since(start);
    const auto loaded = Clock::now();
    for (std::size_t shape = 0; shape < session_.graded; ++shape) prepare(worker, shape, plan_.prepare[shape]);
    session_.seconds["measure: prepare"] += seconds_since(loaded);
    for (const measure::Planned& planned : plan_.repetitions) repeat(worker, planned);
    check_late_write();
    if (record_.kind == RunKind::timed_odd) odd_shapes(worker);
    const auto done = Clock::now();
    try {
      record_.log = worker.end();
      session_.seconds["measure: end workers"] += seconds_since(done);
    } catch (const process::Leftovers& fault) {
      throw Finding(events::kIntegrityViolation, "leftovers", fault.what());
    }
    return std::move(record_);
  }

 private:
  std::string where(std::size_t shape, const std::string& what) const {
    return "shape " + work_.shapes()[shape].name + ", " + record_.name() + ", " + what;
  }

  double prepare_deadline() const {
    return session_.python() ? session_.options.deadlines.prepare_python : session_.options.deadlines.prepare;
  }

  void prepare(RunningWorker& worker, std::size_t shape, const measure::Keys& keys) {
    const std::string place = where(shape, "prepare");
    timed(worker, protocol::Call::prepare, shape, work_.plan(shape, keys, nullptr), prepare_deadline(), place);
    check_guards(shape, keys.poison, place);
  }

  // The window is taken from the budget of all calls: the submission's time, not what the verifier does around it.
  verify::Repetition timed(RunningWorker& worker, protocol::Call what, std::size_t shape, verify::RepetitionPlan plan,
                           double deadline_s, const std::string& place) {
    double& left_s = session_.measure_seconds_left;
    const double limit_s = std::min(deadline_s, left_s);
    try {
      if (limit_s <= 0) throw Finding(events::kTimeout, "", "");
      const verify::Repetition result = worker.call(*session_.device, what, shape, std::move(plan), limit_s, place);
      left_s -= result.window_us * 1e-6;
      return result;
    } catch (const Finding& finding) {
      if (finding.verdict != events::kTimeout || limit_s == deadline_s) throw;
      const auto whole_s = static_cast<long>(session_.options.deadlines.measure);
      throw Finding(events::kTimeout, "",
                    place + ": all calls together took longer than " + std::to_string(whole_s) + " s");
    }
  }

  void check_guards(std::size_t shape, std::uint64_t poison, const std::string& place) {
    if (const std::int64_t bytes = work_.strayed(shape, poison); bytes > 0) {
      throw Finding(events::kIntegrityViolation, "guard_write",
                    place + ": " + std::to_string(bytes) + " bytes outside its tensors were written");
    }
  }

  // Called as late as can be: right before the outputs are poisoned again, or the worker dies.
  void check_late_write() {
    if (!last_) return;
    if (work_.live_hash(last_->shape) != last_->hash) {
      throw Finding(events::kIntegrityViolation, "late_write",
                    last_->place + ": the outputs changed after the call was done");
    }
    last_.reset();
  }

  const Snapshot* target_for(const measure::Planned& planned, std::size_t shape) {
    auto& sets = session_.pool.sets[shape];
    if (planned.compared && used_[shape] < sets.size()) return &sets[used_[shape]++];
    return &session_.pool.extras[shape][holds_repeat(shape) ? 1 : 0];
  }

  bool holds_repeat(std::size_t shape) const {
    const auto& extras = session_.pool.extras[shape];
    return !extras.empty() && std::any_of(record_.kept.begin(), record_.kept.end(),
                                          [&](const Kept& kept) { return kept.snapshot == &extras[0]; });
  }

  void repeat(RunningWorker& worker, const measure::Planned& planned) {
    const auto shape = static_cast<std::size_t>(planned.shape);
    const int number = static_cast<int>(record_.samples.size());
    const std::string place = where(shape, "repetition " + std::to_string(number + 1));
    check_late_write();
    const Snapshot* snapshot = target_for(planned, shape);
    const verify::Repetition evidence =
        timed(worker, protocol::Call::run, shape, work_.plan(shape, planned.keys, snapshot),
              session_.options.deadlines.repetition, place);
    if (record_.kind == RunKind::observed)
      record_.calls.push_back({place, worker.process().code(), worker.process().text()});
    check_guards(shape, planned.keys.poison, place);
    const std::uint64_t hash = work_.hash(shape, *snapshot);
    last_ = Last{shape, hash, place};
    const bool repeated = !session_.seen[shape].insert(hash).second;
    // Fresh inputs and old outputs: compared for sure, once a run and shape. If that one is right, so small an output
    // may repeat.
    const bool keep = planned.compared || (repeated && !holds_repeat(shape));

    measure::Sample sample =
        measure::judge(evidence, session_.calibrations[shape], session_.device->bounds(), session_.window());
    sample.shape = planned.shape;
    sample.scored = planned.scored;
    sample.compared = keep;
    if (keep) record_.kept.push_back({shape, number, planned.keys.seed, planned.scored, snapshot});
    record_.samples.push_back(sample);
    record_.keys.push_back(planned.keys);
    record_.repeated.push_back(repeated);
    progress();
  }

  // Reported, but not deciding: whatever goes wrong here is this shape's failure alone.
  void odd_shapes(RunningWorker& worker) {
    for (std::size_t shape = session_.graded; shape < work_.shapes().size(); ++shape) {
      const measure::RunPlan& plan = session_.odd_plans[shape - session_.graded];
      const measure::Keys& keys = plan.repetitions.front().keys;
      try {
        prepare(worker, shape, plan.prepare.front());
        const Snapshot* snapshot = &session_.pool.sets[shape].front();
        const std::string place = where(shape, "odd");
        timed(worker, protocol::Call::run, shape, work_.plan(shape, keys, snapshot),
              session_.options.deadlines.repetition, place);
        check_guards(shape, keys.poison, place);
        record_.odd.push_back({shape, -1, keys.seed, false, snapshot});
      } catch (const Finding& finding) {
        record_.odd_failures[shape] = finding.what();
        if (worker.process().exit_facts().ended || finding.verdict == events::kTimeout ||
            !worker.process().violation().empty())
          return;
      }
    }
  }

  void progress() {
    if (Clock::now() - told_ < kProgressPeriod) return;
    told_ = Clock::now();
    session_.reporter->event(events::kProgress, {{"run", record_.run + 1},
                                                 {"runs", measure::kWorkerRuns},
                                                 {"repetition", record_.samples.size()},
                                                 {"repetitions", plan_.repetitions.size()}});
  }

  struct Last {
    std::size_t shape;
    std::uint64_t hash;
    std::string place;
  };

  Session& session_;
  const Workspace& work_;
  const measure::RunPlan& plan_;
  std::vector<std::size_t> used_;  // snapshot sets, by shape
  std::optional<Last> last_;
  RunRecord record_;
  Clock::time_point told_ = Clock::now();
};

}  // namespace

RunRecord run_worker(Session& session, int run, const measure::RunPlan& plan, RunKind kind) {
  RunRecord record = Run(session, run, plan, kind).measure();
  record.complaints = session.device->complaints();
  session.note(record.complaints);
  return record;
}

void Session::note(const std::vector<std::string>& found) {
  for (const std::string& text : found) {
    if (complaints.size() >= kComplaintsMax) return;
    if (std::find(complaints.begin(), complaints.end(), text) == complaints.end()) complaints.push_back(text);
  }
}

void await_conditions(Session& session) {
  const auto start = Clock::now();
  for (;;) {
    const std::vector<std::string> found = session.device->complaints();
    session.note(found);
    if (found.empty() || !session.enforces_conditions()) return;
    if (seconds_since(start) > session.options.deadlines.conditions) {
      throw GradeFault("conditions", "the device is not fit: " + found.front());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

std::string trusted_library(const Session& session) {
  const bool cuda = session.device->facts().kind == "cuda";
  return installed("lib") + (cuda ? "/libkbench_trusted_cuda.so" : "/libkbench_trusted.so");
}

void calibrate(Session& session) {
  const Workspace& work = *session.workspace;
  const bool cuda = session.device->facts().kind == "cuda";
  const std::string library = trusted_library(session);
  std::vector<std::vector<verify::Repetition>> windows[2];
  for (const Trusted variant : {Trusted::empty, Trusted::writing}) {
    auto& of_variant = windows[static_cast<int>(variant)];
    of_variant.resize(session.graded);
    try {
      RunningWorker worker(session, session.options.uid_base + kUidTrusted, Host::native, {}, library,
                           work.trusted_setup(variant, session.graded));
      worker.await_ready(session.options.deadlines.load);
      for (int i = 0; i < measure::kCalibrationRepetitions; ++i) {
        for (std::size_t shape = 0; shape < session.graded; ++shape) {
          // The same plan as a submission's, so that the stretch is as long; the cpu device has no bound on that.
          auto plan = work.plan(shape, measure::draw_keys(session.secrets), &session.pool.sets[shape].front());
          if (!cuda) plan.fills.clear();
          of_variant[shape].push_back(worker.call(*session.device, protocol::Call::run, shape, plan,
                                                  session.options.deadlines.repetition, "calibration"));
        }
      }
      worker.end();
    } catch (const Finding& finding) {
      throw GradeFault("calibration", std::string("the trusted worker: ") + finding.what());
    }
  }
  for (std::size_t shape = 0; shape < session.graded; ++shape) {
    const measure::Calibration c = measure::calibrate(windows[0][shape], windows[1][shape], session.window());
    session.calibrations.push_back(c);
    session.reporter->event(events::kCalibrated, {{"shape", work.shapes()[shape].name},
                                                  {"empty_us", c.empty_us},
                                                  {"writing_us", c.writing_us},
                                                  {"overhead_us", c.overhead_us}});
  }
}

}  // namespace kbench::grade
