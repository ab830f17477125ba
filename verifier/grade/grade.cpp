#include "verifier/grade/grade.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "kbench/events.h"
#include "verifier/grade/prepare.h"
#include "verifier/grade/session.h"
#include "verifier/protocol/protocol.h"

namespace kbench::grade {
namespace {

using nlohmann::json;

struct Verdict {
  std::string verdict, rule, reason;
  measure::Result result;
  std::vector<std::string> flags;
};

void say_started(Session& session) {
  const verify::Facts& facts = session.device->facts();
  session.reporter->event(
      events::kStarted,
      {{"version", kVersion},
       {"protocol", protocol::kVersion},
       {"device", {{"kind", facts.kind}, {"name", facts.name}, {"uuid", facts.uuid}, {"driver", facts.driver}}},
       {"task", session.problem.family + "/" + session.problem.name},
       {"task_hash", session.problem.hash}});
}

void say_run(Session& session, const RunRecord& run) {
  json shapes = json::array();
  for (std::size_t i = 0; i < run.result.shapes.size(); ++i) {
    const measure::Summary& s = run.result.shapes[i];
    shapes.push_back({{"name", session.workspace->shapes()[i].name},
                      {"median_us", s.median},
                      {"low_us", s.low},
                      {"high_us", s.high},
                      {"mad_us", s.mad}});
  }
  session.reporter->event(
      events::kRunDone,
      {{"run", session.runs.size() + 1}, {"reward", run.result.reward}, {"shapes", shapes}, {"checked", run.compared}});
}

// One worker run with its comparisons; again, within bounds, when the hardware slowed down. Everything was drawn
// beforehand.
RunRecord run_once(Session& session, std::size_t& next_plan) {
  for (;;) {
    if (next_plan >= session.plans.size())
      throw GradeFault("conditions", "no worker run was free of hardware slowdown or strangers");
    await_conditions(session);
    const int run = static_cast<int>(next_plan);
    RunRecord record = [&] {
      const Phase phase(session, "measure");
      return run_worker(session, run, session.plans[next_plan], next_plan == 0 ? RunKind::timed_odd : RunKind::timed);
    }();
    ++next_plan;
    {
      const Phase phase(session, "compare");
      check_run(session, record);
    }
    if (record.complaints.empty() || !session.enforces_conditions()) return record;
    session.voided.push_back(std::move(record));
    if (static_cast<int>(session.voided.size()) > measure::kHardwareVoidsMax) {
      throw GradeFault("conditions", "the device slowed down again: " + session.voided.back().complaints.front());
    }
  }
}

// More void repetitions than an honest run has: the submission's doing if it happens again alone on the device, else
// ours.
[[noreturn]] void judge_interference(Session& session, RunRecord&& first, std::size_t& next_plan) {
  session.voided.push_back(std::move(first));
  const RunRecord again = run_once(session, next_plan);
  session.voided.push_back(again);
  if (!measure::too_many_void(again.samples))
    throw GradeFault("conditions", "more than a tenth of a worker run's windows were disturbed, but not again");
  std::string rules;
  for (const measure::Sample& sample : again.samples) {
    const std::string name(measure::name_of(sample.breach));
    if (sample.breach != measure::Breach::none && rules.find(name) == std::string::npos)
      rules += (rules.empty() ? "" : ", ") + name;
  }
  throw Finding(events::kIntegrityViolation, "interference",
                "more than a tenth of the windows were disturbed, twice: " + rules);
}

Verdict measure_all(Session& session) {
  std::size_t next_plan = 0;
  std::vector<double> rewards;
  for (int run = 0; run < measure::kWorkerRuns; ++run) {
    RunRecord record = run_once(session, next_plan);
    if (measure::too_many_void(record.samples)) judge_interference(session, std::move(record), next_plan);
    record.result = measure::reward_of(record.samples, session.work, session.problem.metric);
    rewards.push_back(record.result.reward);
    say_run(session, record);
    session.runs.push_back(std::move(record));
  }
  Verdict verdict{events::kCorrect, "", "", measure::result_of(rewards), {}};
  const verify::Facts& facts = session.device->facts();
  session.peak = measure::peak_of(facts, load_peaks(facts.name), session.problem.work.bound);
  if (measure::above_peak(verdict.result.reward, session.peak, session.problem.peak_factor))
    verdict.flags.push_back("above_peak");
  if (!session.peak && facts.kind == "cuda" && session.problem.peak_factor > 0) verdict.flags.push_back("peak_unknown");
  if (!session.complaints.empty() && !session.enforces_conditions()) verdict.flags.push_back("disturbed");
  return verdict;
}

Verdict run_all(Session& session) {
  try {
    load_task(session);
    open_device(session);
    say_started(session);
    take_artefact(session);
    load_reference(session);
    make_workspace(session);
    session.canary_before_us = session.device->canary();
    {
      const Phase phase(session, "compare");
      time_checks(session);
    }
    draw_plans(session);
    await_conditions(session);
    {
      const Phase phase(session, "calibrate");
      calibrate(session);
    }
    observe(session);
    Verdict verdict = measure_all(session);
    session.canary_after_us = session.device->canary();
    return verdict;
  } catch (const Finding& finding) {
    return {finding.verdict, finding.rule, finding.what(), {}, {}};
  }
}

void deliver(Session& session, const Verdict& verdict) {
  const char* metric = session.problem.metric == Metric::tflops ? "TFLOP/s" : "GB/s";
  json last = {{"verdict", verdict.verdict},
               {"reason", verdict.reason},
               {"reward", verdict.result.reward},
               {"metric", metric},
               {"interval", {verdict.result.low, verdict.result.high}},
               {"flags", verdict.flags}};
  if (!verdict.rule.empty()) last["rule"] = verdict.rule;
  json details = details_of(session);
  details.update(last);
  report::write_details(session.options.out, details);
  report::write_reward(session.options.out, verdict.result.reward);
  session.reporter->event(events::kVerdict, last);
  if (session.options.table) print_table(session, verdict.verdict, verdict.reason, verdict.result);
}

int infra(const Options& options, report::Reporter* reporter, const std::string& cause, const std::string& message) {
  std::fprintf(stderr, "kbench-verify: infrastructure (%s): %s\n", cause.c_str(), message.c_str());
  try {
    report::write_infra_error(options.out, cause, message);
    if (reporter != nullptr) reporter->event(events::kInfra, {{"cause", cause}, {"message", message}});
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "kbench-verify: %s\n", fault.what());
  }
  return kExitInfra;
}

}  // namespace

Phase::Phase(Session& session, const char* name) : session_(session), name_(name) {
  session.reporter->event(events::kPhase, {{"phase", name}});
}
Phase::~Phase() {
  session_.seconds[name_] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

int grade(const Options& options) {
  Session session(options);
  const auto failed = [&](const char* cause, const std::exception& fault) {
    return infra(options, session.reporter.get(), cause, fault.what());
  };
  try {
    report::remove_results(options.out);
    session.reporter = report::Reporter::open(options.out, options.report);
    const Verdict verdict = run_all(session);
    deliver(session, verdict);
    return kExitOk;
  } catch (const GradeFault& fault) {
    return infra(options, session.reporter.get(), fault.cause, fault.what());
  } catch (const BadProblem& fault) {
    return failed("task", fault);
  } catch (const verify::OutOfDeviceMemory& fault) {
    return failed("memory", fault);
  } catch (const verify::WrongGpus& fault) {
    return failed("gpus", fault);
  } catch (const verify::DeviceFault& fault) {
    return failed("device", fault);
  } catch (const process::ProcessFault& fault) {
    return failed("worker", fault);
  } catch (const measure::NotCredible& fault) {
    return failed("measurement", fault);
  } catch (const std::exception& fault) {
    return failed("verifier", fault);
  }
}

}  // namespace kbench::grade
