// The rule kernels_max: an untimed worker run like the timed ones, in which each call's kernels are counted.
#include "kbench/events.h"
#include "verifier/grade/session.h"
#include "verifier/grade/worker.h"

namespace kbench::grade {
namespace {

// A trusted worker whose kernels are known is counted first: from here on, whatever is wrong with the counting is the
// submission's doing.
void check_observer(Session& session) {
  const Workspace& work = *session.workspace;
  protocol::Setup setup = work.trusted_setup(Trusted::writing, session.graded);
  setup.observed = 1;
  const auto launched = static_cast<int>(work.outputs().size());  // one an output
  try {
    RunningWorker worker(session, session.options.uid_base + kUidTrusted, Host::native, {}, trusted_library(session),
                         setup);
    worker.await_ready(session.options.deadlines.load);
    for (std::size_t shape = 0; shape < session.graded; ++shape) {
      worker.call(*session.device, protocol::Call::run, shape,
                  work.plan(shape, measure::draw_keys(session.secrets), nullptr), session.options.deadlines.repetition,
                  "the trusted worker");
      if (const int seen = worker.process().code(); seen != launched) {
        throw GradeFault("observer", "of the trusted worker's " + std::to_string(launched) + " kernels " +
                                         std::to_string(seen) + " were seen");
      }
    }
    worker.end();
  } catch (const Finding& finding) {
    throw GradeFault("observer", std::string("kernels cannot be counted: ") + finding.what());
  }
}

}  // namespace

void judge_kernels(const std::vector<ObservedCall>& calls, int kernels_max) {
  for (const ObservedCall& call : calls) {
    if (call.kernels == 0)
      throw Finding(events::kRuleViolation, "kernels_max", call.where + ": no kernel of this process was seen");
    if (call.kernels < 1 || call.kernels > kernels_max)
      throw Finding(events::kRuleViolation, "kernels_max",
                    call.where + ": " + std::to_string(call.kernels) + " kernels, at most " +
                        std::to_string(kernels_max) + " allowed: " + call.names);
  }
}

void observe(Session& session) {
  if (session.problem.kernels_max == 0 || !session.device->has_kernels()) return;
  {
    const Phase phase(session, "observe");
    check_observer(session);
    const measure::RunPlan plan =
        measure::draw_run(session.secrets, static_cast<int>(session.graded), session.compared);
    session.observed = run_worker(session, static_cast<int>(session.plans.size()), plan, RunKind::observed);
  }
  {
    const Phase phase(session, "compare");
    check_run(session, *session.observed);
  }
  judge_kernels(session.observed->calls, session.problem.kernels_max);
}

}  // namespace kbench::grade
