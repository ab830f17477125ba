#include "daemon/grader/outcome.h"

#include <kbench/events.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/engine/streams.h"

namespace kbench::grader {

using Json = nlohmann::json;
using store::Outcome;

namespace {

constexpr const char* kVerdicts[] = {
    events::kCorrect, events::kIncorrect,   events::kCompileError,       events::kRuntimeError,
    events::kTimeout, events::kOutOfMemory, events::kIntegrityViolation, events::kRuleViolation};

std::string text_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? engine::sanitised(found->get<std::string>()) : "";
}

std::optional<double> number_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

// Discarded where it is no JSON, or is nested so deep that writing it again would take all of the stack.
Json parse(const std::optional<std::string>& text) {
  constexpr int kDepthMax = 64;
  bool too_deep = false;
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    return !(too_deep = too_deep || depth > kDepthMax);
  };
  Json parsed = text ? Json::parse(*text, shallow, false) : Json();
  return too_deep ? Json() : parsed;
}

// Eligible, and why or why not.
std::pair<bool, std::string> rank(const std::string& verdict, const Json& details, const std::string& device,
                                  const std::vector<std::string>& ranked_devices) {
  if (verdict != events::kCorrect) return {false, verdict};
  if (std::find(ranked_devices.begin(), ranked_devices.end(), device) == ranked_devices.end())
    return {false, "results of the device " + device + " are not ranked"};
  if (const auto flags = details.find("flags"); flags != details.end() && flags->is_array())
    for (const Json& flag : *flags)
      if (flag.is_string()) return {false, engine::sanitised(flag.get<std::string>())};
  return {true, "correct"};
}

Judged infra_fault(const std::string& cause, bool final = false) { return {infra(cause, final), false}; }

// No result at all: who ended it?
Judged without_result(const Measured& measured) {
  if (measured.disturbed) return infra_fault("engine: it went away while the container ran");
  if (measured.oom_killed)
    return {verdict_without_measuring(events::kOutOfMemory, "the memory limit of the container"), false};
  // What is around the worker runs takes its time whatever the submission does: when that was most of it, it is ours;
  // else the submission's, wherever the deadline fell: it must not choose that.
  if (measured.deadline_hit && measured.measuring_share > 0.5)
    return {verdict_without_measuring(events::kTimeout, "the grading took too long"), false};
  if (measured.deadline_hit) return infra_fault("verifier: out of time, and not by what the submission did");
  return infra_fault("verifier: it ended with status " + std::to_string(measured.exit_code) + " and left no result");
}

}  // namespace

std::optional<Compiled> read_compiled(const std::string& text, std::size_t log_bytes_max) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("ok") || !json["ok"].is_boolean()) return std::nullopt;
  Compiled compiled;
  compiled.ok = json["ok"].get<bool>();
  if (json.contains("exit_code") && json["exit_code"].is_number_integer())
    compiled.exit_code = json["exit_code"].get<int>();
  if (json.contains("seconds")) compiled.seconds = number_of(json["seconds"]).value_or(0);
  engine::TailText log(log_bytes_max);
  log.add(text_of(json, "log"));
  compiled.log = log.text();
  compiled.compiler = text_of(json, "compiler").substr(0, 256);
  return compiled;
}

double measuring_share(const std::string& spool, std::chrono::milliseconds whole) {
  const auto end = static_cast<double>(whole.count());
  double measuring = 0, began = 0;
  bool within = false;
  std::istringstream lines(spool);
  for (std::string line; std::getline(lines, line);) {
    const Json event = parse(line);
    if (text_of(event, "type") != events::kPhase || !event.contains("ms")) continue;
    const double at = std::min(std::max(number_of(event["ms"]).value_or(end), began), end);  // time goes on
    if (within) measuring += at - began;
    within = text_of(event, "phase") == "measure";
    began = at;
  }
  if (within) measuring += end - began;
  return end > 0 ? measuring / end : 0;
}

Outcome infra(const std::string& cause, bool final) {
  Outcome outcome{};
  outcome.kind = Outcome::Kind::infra;
  outcome.reason = cause;
  outcome.final = final;
  return outcome;
}

Outcome verdict_without_measuring(const char* verdict, const std::string& reason) {
  Outcome outcome{};
  outcome.kind = Outcome::Kind::verdict;
  outcome.verdict = verdict;
  outcome.reason = reason;
  outcome.reward = 0;
  outcome.rank_reason = verdict;
  return outcome;
}

Judged judge(const Measured& measured, const std::string& device, const std::vector<std::string>& ranked_devices,
             const std::string& extra) {
  if (measured.infra) {
    // Written beside a reward it would be a contradiction; the verifier writes one or the other.
    const Json fault = parse(measured.infra);
    const std::string cause = text_of(fault, "cause");
    if (measured.oom_killed && (cause.empty() || cause == "memory" || cause == "worker"))
      return without_result(measured);
    const bool final = cause == "task" || cause == "image" || cause == "gpus";  // the next try would find the same
    Judged judged = infra_fault((cause.empty() ? "verifier" : cause) + ": " + text_of(fault, "message"), final);
    judged.gpu_fault = device == "cuda" && cause == "device";
    return judged;
  }
  if (!measured.reward || !measured.details) return without_result(measured);
  Json details = parse(measured.details);
  const Json reward_json = parse(measured.reward);
  std::string verdict = text_of(details, "verdict");
  const std::optional<double> reward =
      reward_json.is_object() && reward_json.contains("reward") ? number_of(reward_json["reward"]) : std::nullopt;
  if (!details.is_object() || !reward ||
      std::find(std::begin(kVerdicts), std::end(kVerdicts), verdict) == std::end(kVerdicts))
    return infra_fault("verifier: its result cannot be read");
  if (verdict != events::kCorrect && *reward != 0) return infra_fault("verifier: a reward without the verdict correct");

  Outcome outcome{};
  outcome.kind = Outcome::Kind::verdict;
  outcome.reason = text_of(details, "reason");
  if (const std::string rule = text_of(details, "rule"); !rule.empty()) outcome.reason = rule + ": " + outcome.reason;
  if (verdict == events::kRuntimeError && measured.oom_killed) {
    verdict = events::kOutOfMemory;
    outcome.reason = "the memory limit of the container; " + outcome.reason;
    details["verdict"] = verdict;
  }
  outcome.verdict = verdict;
  outcome.reward = reward;
  outcome.metric = text_of(details, "metric");
  if (const auto interval = details.find("interval");
      verdict == events::kCorrect && interval != details.end() && interval->is_array() && interval->size() == 2) {
    outcome.interval_low = number_of((*interval)[0]);
    outcome.interval_high = number_of((*interval)[1]);
  }
  std::tie(outcome.rank_eligible, outcome.rank_reason) = rank(verdict, details, device, ranked_devices);
  details["daemon"] = Json::parse(extra, nullptr, false);
  outcome.details_json = details.dump(-1, ' ', false, Json::error_handler_t::replace);
  return {std::move(outcome), false};
}

}  // namespace kbench::grader
