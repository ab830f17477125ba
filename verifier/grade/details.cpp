#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "verifier/grade/session.h"
#include "verifier/protocol/protocol.h"

namespace kbench::grade {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

json of(const measure::Summary& s) {
  return {{"count", s.count},          {"median_us", number(s.median)}, {"low_us", number(s.low)},
          {"high_us", number(s.high)}, {"mad_us", number(s.mad)},       {"min_us", number(s.min)},
          {"max_us", number(s.max)}};
}

json of(const verify::Facts& f) {
  return {{"kind", f.kind},
          {"name", f.name},
          {"uuid", f.uuid},
          {"driver", f.driver},
          {"runtime", f.runtime},
          {"units", f.units},
          {"memory_bytes", f.memory_bytes},
          {"l2_bytes", f.l2_bytes},
          {"clock_mhz_max", f.clock_mhz_max},
          {"memory_clock_mhz_max", f.memory_clock_mhz_max},
          {"warnings", f.warnings}};
}

json of(const Session& session, const RunRecord& run) {
  json samples = json::array(), shapes = json::array();
  for (std::size_t i = 0; i < run.samples.size(); ++i) {
    const measure::Sample& s = run.samples[i];
    samples.push_back({{"shape", session.workspace->shapes()[static_cast<std::size_t>(s.shape)].name},
                       {"scored", s.scored},
                       {"compared", s.compared},
                       {"repeated", run.repeated[i] != 0},
                       {"breach", measure::name_of(s.breach)},
                       {"time_us", number(s.time_us)},
                       {"window_us", s.evidence.window_us},
                       {"quiescence_us", s.evidence.quiescence_us},
                       {"stretch_us", s.evidence.stretch_us},
                       {"start_us", s.evidence.start_us},
                       {"worker_us", s.evidence.worker_us},
                       {"seed", hex(run.keys[i].seed)}});
  }
  for (std::size_t i = 0; i < run.result.shapes.size(); ++i) {
    json shape = of(run.result.shapes[i]);
    shape["name"] = session.workspace->shapes()[i].name;
    shapes.push_back(std::move(shape));
  }
  return {{"run", run.run + 1},         {"reward", run.result.reward},  {"shapes", shapes},
          {"samples", samples},         {"compared", run.compared},     {"max_error", run.max_error},
          {"rms_error", run.rms_error}, {"complaints", run.complaints}, {"log", run.log}};
}

json runs_of(const Session& session, const std::vector<RunRecord>& runs) {
  json all = json::array();
  for (const RunRecord& run : runs) all.push_back(of(session, run));
  return all;
}

// How the task's rules were looked at. Calls that are alike are one row.
json rules_of(const Session& session) {
  json rules = {{"kernels_max", session.problem.kernels_max}, {"applies", session.device->has_kernels()}};
  if (!session.observed) return rules;
  json rows = json::array();
  std::map<std::pair<int, std::string>, std::size_t> row_of;
  for (const ObservedCall& call : session.observed->calls) {
    const auto [found, fresh] = row_of.try_emplace({call.kernels, call.names}, rows.size());
    if (fresh) rows.push_back({{"first", call.where}, {"calls", 0}, {"kernels", call.kernels}, {"names", call.names}});
    rows[found->second]["calls"] = rows[found->second]["calls"].get<int>() + 1;
  }
  rules["observed"] = std::move(rows);
  rules["log"] = session.observed->log;
  return rules;
}

json task_of(const Problem& p) {
  return {{"family", p.family}, {"name", p.name}, {"version", p.version}, {"hash", p.hash}};
}

}  // namespace

json details_of(const Session& session) {
  const Problem& p = session.problem;
  json details = {
      {"schema", 1},
      {"verifier", {{"version", kVersion}, {"protocol", protocol::kVersion}}},
      {"task", task_of(p)},
      {"language", session.language},
      {"compile",
       {{"compiler", session.compiled.compiler}, {"seconds", session.compiled.seconds}, {"log", session.compiled.log}}},
      {"seconds", session.seconds}};
  if (session.device) details["device"] = of(session.device->facts());
  if (session.device && p.kernels_max > 0) details["rules"] = rules_of(session);
  if (!session.workspace) return details;
  json shapes = json::array(), calibration = json::array(), odd = json::array();
  for (std::size_t i = 0; i < session.graded; ++i) {
    const Shape& shape = session.workspace->shapes()[i];
    json one = {{"name", shape.name}, {"dims", shape.dims}, {"work", session.work[i]}};
    if (i < session.check_seconds.size()) one["check_seconds"] = session.check_seconds[i];
    if (i < session.compared.size()) one["compared_per_run"] = session.compared[i];
    shapes.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < session.calibrations.size(); ++i) {
    const measure::Calibration& c = session.calibrations[i];
    calibration.push_back({{"shape", session.workspace->shapes()[i].name},
                           {"empty_us", c.empty_us},
                           {"writing_us", c.writing_us},
                           {"overhead_us", c.overhead_us},
                           {"answer_us", c.answer_us},
                           {"floor_us", c.floor_us},
                           {"stretch_us", c.stretch_us},
                           {"start_us", c.start_us}});
  }
  for (const OddResult& o : session.odd) {
    odd.push_back({{"name", o.shape.name}, {"dims", o.shape.dims}, {"passed", o.passed}, {"reason", o.reason}});
  }
  const verify::Bounds bounds = session.device->bounds();
  details["shapes"] = shapes;
  details["calibration"] = calibration;
  details["bounds"] = {{"quiescence_us_max", number(bounds.quiescence_us_max)},
                       {"stretch_ratio_max", number(bounds.stretch_ratio_max)},
                       {"start_excess_us_max", number(bounds.start_excess_us_max)}};
  details["conditions"] = {{"complaints", session.complaints},
                           {"canary_before_us", session.canary_before_us},
                           {"canary_after_us", session.canary_after_us},
                           {"voided_runs", runs_of(session, session.voided)}};
  if (session.peak) details["peak"] = *session.peak;
  details["runs"] = runs_of(session, session.runs);
  details["odd"] = odd;
  return details;
}

void print_table(const Session& session, const std::string& verdict, const std::string& reason,
                 const measure::Result& result) {
  const bool flops = session.problem.metric == Metric::tflops;
  const char* unit = flops ? "TFLOP/s" : "GB/s";
  std::printf("%s/%s on %s\n", session.problem.family.c_str(), session.problem.name.c_str(),
              session.device->facts().name.c_str());
  if (!session.runs.empty()) std::printf("%-16s %14s %22s %12s\n", "shape", "median us", "spread of runs us", unit);
  for (std::size_t shape = 0; !session.runs.empty() && shape < session.graded; ++shape) {
    std::vector<double> medians;
    for (const RunRecord& run : session.runs) {
      if (shape < run.result.shapes.size()) medians.push_back(run.result.shapes[shape].median);
    }
    if (medians.empty()) continue;
    const measure::Summary s = measure::summarise(medians);
    const double rate = session.work[shape] / (s.median * 1e-6) / (flops ? 1e12 : 1e9);
    std::printf("%-16s %14.2f %10.2f .. %8.2f %12.4g\n", session.workspace->shapes()[shape].name.c_str(), s.median,
                s.min, s.max, rate);
  }
  for (const OddResult& odd : session.odd) {
    std::string dims;
    for (const auto& [name, value] : odd.shape.dims) dims += " " + name + "=" + std::to_string(value);
    std::printf("%-16s %s%s%s\n", odd.shape.name.c_str(), odd.passed ? "passed" : "FAILED", dims.c_str(),
                odd.passed ? "" : (": " + odd.reason).c_str());
  }
  if (session.observed && !session.observed->calls.empty()) {
    const ObservedCall& call = session.observed->calls.back();
    std::printf("%-16s %d: %s\n", "kernels a call", call.kernels, call.names.c_str());
  }
  std::printf("%s%s%s\n", verdict.c_str(), reason.empty() ? "" : ": ", reason.c_str());
  if (verdict == "correct")
    std::printf("reward %.6g %s, runs %.6g .. %.6g\n", result.reward, unit, result.low, result.high);
}

}  // namespace kbench::grade
