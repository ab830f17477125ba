// What containers leave behind: reward.json, details.json and infra_error.json, compile.json (as the daemon and as the
// verifier read it), the spool of events; in sections between lines of "---". The first byte says which are there and
// how the container ended.
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "daemon/grader/outcome.h"
#include "test/fuzz/fuzz.h"
#include "verifier/grade/compile.h"
#include "verifier/grade/grade.h"

using namespace kbench;
using namespace kbench::fuzz;
using Json = nlohmann::json;

namespace {

bool printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'; });
}

const std::string& folder() {
  static const std::string& path = *new std::string([] {
    std::string name = "/tmp/kbench-fuzz-results-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr, "a folder for compile.json");
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return name;
  }());
  return path;
}

void check_compile_json(const std::string& text) {
  std::ofstream(folder() + "/compile.json", std::ios::binary) << text;
  grade::CompileResult result;
  try {
    result = grade::read_compile_json(folder());
  } catch (const grade::GradeFault& fault) {
    require(fault.cause == "compiler", "the compiler's fault");
    return;
  }
  require(std::isfinite(result.seconds), "seconds that are a number");
  require(result.log.size() <= grade::ProcessLimits{}.log_bytes + 1024, "a log within its limit");
  require(result.compiler.size() <= 256 && result.language.size() <= 16, "names within theirs");
  const std::string all = result.log + result.compiler + result.language;
  require(printable(all), "plain ASCII");
  if (all.find('\\') != all.npos) return;  // is escaped once more
  grade::write_compile_json(folder(), result);
  const grade::CompileResult again = grade::read_compile_json(folder());
  require(again.ok == result.ok && again.exit_code == result.exit_code && again.seconds == result.seconds &&
              again.log == result.log && again.compiler == result.compiler && again.language == result.language,
          "what is read is written and read as the same");
}

void check_spool(const std::string& spool) {
  std::string with_rubbish = "[]\n";
  for (const char c : spool) {
    with_rubbish += c;
    if (c == '\n') with_rubbish += "{\"type\":\"phase\n]\n";
  }
  for (const int whole : {0, 1000}) {
    const double share = grader::measuring_share(spool, std::chrono::milliseconds(whole));
    require(share >= 0 && share <= 1, "a share");
    require(grader::measuring_share(with_rubbish, std::chrono::milliseconds(whole)) == share, "rubbish says nothing");
  }
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  const unsigned flags = input.byte();
  std::vector<std::string> parts = sections(input.rest());
  parts.resize(5);
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
  check_compile_json(parts[3]);
  check_spool(parts[4]);
  return 0;
}
