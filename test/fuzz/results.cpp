// What containers leave behind: reward.json, details.json and infra_error.json, compile.json; in sections between lines
// of "---". The first byte says which are there and how the container ended.
#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/grader/outcome.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;
using Json = nlohmann::json;

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  const unsigned flags = input.byte();
  std::vector<std::string> parts = sections(input.rest());
  parts.resize(4);
  grader::Measured measured;
  if (flags & 1) measured.reward = parts[0];
  if (flags & 2) measured.details = parts[1];
  if (flags & 4) measured.infra = parts[2];
  measured.oom_killed = flags & 8;
  measured.deadline_hit = flags & 16;
  measured.disturbed = flags & 32;
  const std::string device = flags & 64 ? "cuda" : "cpu";
  const grader::Judged judged = grader::judge(measured, device, {"cuda"}, R"({"host":"h"})");
  const store::Outcome& outcome = judged.outcome;
  if (outcome.reward) require(std::isfinite(*outcome.reward) && *outcome.reward >= 0, "a reward that is a number");
  if (outcome.kind == store::Outcome::Kind::infra) {
    require(!outcome.reason.empty(), "a cause");
  } else {
    require(outcome.verdict == "correct" || !outcome.reward || *outcome.reward == 0, "no reward unless correct");
    require(!outcome.rank_eligible || (device == "cuda" && outcome.verdict == "correct"), "ranked only when it may be");
    if (!outcome.details_json.empty()) require(Json::parse(outcome.details_json).is_object(), "details are an object");
  }
  if (const auto compiled = grader::read_compiled(parts[3], 100)) {
    require(std::isfinite(compiled->seconds) && compiled->seconds >= 0, "seconds that are a number");
    require(compiled->log.size() <= 3 * 100 + 64, "a log within its limit");
  }
  return 0;
}
