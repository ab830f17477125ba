#include <algorithm>
#include <chrono>

#include "kbench/events.h"
#include "verifier/grade/session.h"

namespace kbench::grade {
namespace {

using Clock = std::chrono::steady_clock;

void run_reference(Session& session, std::size_t shape) {
  const std::vector<std::uint64_t> slots = session.workspace->private_slots(shape);
  try {
    session.device->run_reference(session.reference, slots.data());
  } catch (const verify::OutOfDeviceMemory& fault) {
    throw GradeFault("memory", std::string("the reference: ") + fault.what());
  } catch (const verify::DeviceFault& fault) {
    throw GradeFault("reference", fault.what());
  }
}

// The first output that is not equal, or an equal outcome with the largest errors of all.
compare::Outcome compare_call(Session& session, std::size_t shape, std::uint64_t seed, const Snapshot* snapshot) {
  Workspace& work = *session.workspace;
  work.regenerate(shape, seed);
  run_reference(session, shape);
  compare::Outcome all;
  all.equal = true;
  for (std::size_t i = 0; i < work.outputs().size(); ++i) {
    const std::size_t tensor = work.outputs()[i];
    const verify::Region expected = work.expected(shape, tensor);
    const verify::Region got = snapshot != nullptr ? work.got(shape, *snapshot, i) : expected;
    const compare::Outcome one =
        session.rules[tensor]->judge(*session.device, session.problem.tensors[tensor], work.shapes()[shape].dims, got,
                                     expected, work.initial(shape, tensor));
    if (!one.equal) return one;
    all.max_error = std::max(all.max_error, one.max_error);
    all.rms_error = std::max(all.rms_error, one.rms_error);
  }
  return all;
}

void check_odd(Session& session, const RunRecord& run) {
  for (std::size_t shape = session.graded; shape < session.workspace->shapes().size(); ++shape) {
    OddResult result{session.workspace->shapes()[shape], false, "not reached"};
    if (const auto failure = run.odd_failures.find(shape); failure != run.odd_failures.end())
      result.reason = failure->second;
    for (const Kept& kept : run.odd) {
      if (kept.shape != shape) continue;
      try {
        const compare::Outcome outcome = compare_call(session, shape, kept.seed, kept.snapshot);
        result.passed = outcome.equal;
        result.reason = outcome.reason;
      } catch (const GradeFault& fault) {  // the reference has not run at this shape before: it may not fit
        result.reason = std::string("not judged: ") + fault.what();
      }
    }
    session.odd.push_back(std::move(result));
  }
}

}  // namespace

void check_run(Session& session, RunRecord& run) {
  for (const Kept& kept : run.kept) {
    const compare::Outcome outcome = compare_call(session, kept.shape, kept.seed, kept.snapshot);
    if (!outcome.equal) {
      throw Finding(events::kIncorrect, "",
                    "shape " + session.workspace->shapes()[kept.shape].name + ", " + run.name() + ", repetition " +
                        std::to_string(kept.repetition + 1) + (kept.scored ? " (scored): " : " (unscored): ") +
                        outcome.reason);
    }
    ++run.compared;
    run.max_error = std::max(run.max_error, outcome.max_error);
    run.rms_error = std::max(run.rms_error, outcome.rms_error);
  }
  if (run.kind == RunKind::timed_odd) check_odd(session, run);
}

void time_checks(Session& session) {
  for (std::size_t shape = 0; shape < session.graded; ++shape) {
    double seconds = 0;
    for (int i = 0; i < 2; ++i) {  // the first also pages in; a long one is near enough
      const auto start = Clock::now();
      const compare::Outcome outcome = compare_call(session, shape, session.secrets.next(), nullptr);
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (!outcome.equal) throw GradeFault("reference", "the reference does not equal itself: " + outcome.reason);
      if (seconds > 0.5) break;
    }
    session.check_seconds.push_back(seconds);
  }
}

}  // namespace kbench::grade
