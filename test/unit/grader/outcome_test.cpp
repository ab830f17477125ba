#include "daemon/grader/outcome.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace kbench;
using namespace kbench::grader;
using Json = nlohmann::json;
using Kind = store::Outcome::Kind;

namespace {

Measured result(const std::string& verdict, double reward, Json more = Json::object()) {
  Json details = {{"verdict", verdict},
                  {"reason", "why"},
                  {"reward", reward},
                  {"metric", "GB/s"},
                  {"interval", {reward, reward + 1}},
                  {"flags", Json::array()}};
  details.update(more);
  Measured measured;
  measured.reward = Json{{"reward", reward}}.dump();
  measured.details = details.dump();
  return measured;
}

Judged judged(const Measured& measured, const std::string& device = "cuda") {
  return judge(measured, device, {"cuda"}, R"({"x":1})");
}

}  // namespace

TEST_CASE("rule 6: the verdict is what the files say, whatever the exit code and the output") {
  Measured measured = result("correct", 12.5);
  measured.exit_code = 137;
  measured.log = "incorrect!";
  const auto outcome = judged(measured).outcome;
  CHECK(outcome.kind == Kind::verdict);
  CHECK(outcome.verdict == "correct");
  CHECK(outcome.reward == 12.5);
  CHECK(outcome.interval_low == 12.5);
  CHECK(outcome.interval_high == 13.5);
  CHECK(outcome.metric == "GB/s");
  CHECK(outcome.rank_eligible);
  CHECK(Json::parse(outcome.details_json)["daemon"]["x"] == 1);
  Measured nothing;
  nothing.exit_code = 0;
  nothing.log = R"({"verdict":"correct","reward":99})";
  CHECK(judged(nothing).outcome.kind == Kind::infra);
}

TEST_CASE("every verdict comes through, with no reward unless correct") {
  for (const char* verdict : {"incorrect", "compile_error", "runtime_error", "timeout", "out_of_memory",
                              "integrity_violation", "rule_violation"}) {
    const auto outcome = judged(result(verdict, 0)).outcome;
    CHECK(outcome.verdict == verdict);
    CHECK(outcome.reward == 0);
    CHECK_FALSE(outcome.interval_low);
    CHECK_FALSE(outcome.rank_eligible);
    CHECK(outcome.rank_reason == verdict);
  }
  CHECK(judged(result("integrity_violation", 0, {{"rule", "late_write"}})).outcome.reason == "late_write: why");
}

TEST_CASE("eligibility: device and flags, each with its reason") {
  CHECK_FALSE(judged(result("correct", 1), "cpu").outcome.rank_eligible);
  CHECK(judged(result("correct", 1), "cpu").outcome.rank_reason == "results of the device cpu are not ranked");
  const auto flagged = judged(result("correct", 1, {{"flags", {"above_peak"}}})).outcome;
  CHECK(flagged.verdict == "correct");
  CHECK_FALSE(flagged.rank_eligible);
  CHECK(flagged.rank_reason == "above_peak");
}

TEST_CASE("rule 10: no result and nobody to blame is infrastructure") {
  Measured measured;
  measured.exit_code = 1;
  CHECK(judged(measured).outcome.kind == Kind::infra);
  CHECK_FALSE(judged(measured).outcome.final);
  CHECK(judged(measured).outcome.reason == "verifier: it ended with status 1 and left no result");
  measured.disturbed = measured.deadline_hit = measured.oom_killed = true;
  CHECK(judged(measured).outcome.reason.starts_with("engine: "));
}

TEST_CASE("no result: out of memory and our deadline are the submission's") {
  Measured measured;
  measured.exit_code = 137;
  measured.deadline_hit = true;
  measured.measuring_share = 0.51;
  CHECK(judged(measured).outcome.verdict == "timeout");
  measured.measuring_share = 0.5;
  CHECK(judged(measured).outcome.kind == Kind::infra);
  measured.oom_killed = true;
  CHECK(judged(measured).outcome.verdict == "out_of_memory");
}

TEST_CASE("the measuring share is of all worker runs, and what was under way lasted to the end") {
  using std::chrono::milliseconds;
  const auto phase = [](int ms, const std::string& name) {
    return Json{{"seq", 1}, {"ms", ms}, {"type", "phase"}, {"phase", name}}.dump() + "\n";
  };
  const std::string before = phase(0, "reference") + phase(100, "calibrate");
  CHECK(measuring_share("", milliseconds(1000)) == 0);
  CHECK(measuring_share(before, milliseconds(1000)) == 0);
  CHECK(measuring_share(before + phase(200, "measure"), milliseconds(1000)) == 0.8);
  const std::string run = before + phase(200, "measure") + phase(500, "compare");
  CHECK(measuring_share(run, milliseconds(1000)) == 0.3);
  CHECK(measuring_share(run + phase(700, "measure") + phase(900, "compare"), milliseconds(1000)) == 0.5);
  CHECK(measuring_share(run + "no JSON\n[]\n{\"type\":\"phase\"}\n" + phase(2000, "measure"), milliseconds(1000)) ==
        0.3);
  CHECK(measuring_share(run, milliseconds(0)) == 0);
  CHECK(measuring_share(phase(0, "measure") + phase(900, "measure") + phase(100, "measure") + phase(900, "compare"),
                        milliseconds(1000)) == 0.9);
}

TEST_CASE("an OOM kill explains a runtime error, and nothing else") {
  Measured measured = result("runtime_error", 0);
  measured.oom_killed = true;
  CHECK(judged(measured).outcome.verdict == "out_of_memory");
  CHECK(Json::parse(judged(measured).outcome.details_json)["verdict"] == "out_of_memory");
  measured = result("integrity_violation", 0);
  measured.oom_killed = true;
  CHECK(judged(measured).outcome.verdict == "integrity_violation");
}

TEST_CASE("an infrastructure error of the verifier: its cause, its retry, its GPU") {
  Measured measured;
  measured.infra = R"({"cause":"device","message":"no \u001b[31mcontext"})";
  CHECK(judged(measured).outcome.reason == "device: no context");
  CHECK(judged(measured).gpu_fault);
  CHECK_FALSE(judged(measured, "cpu").gpu_fault);
  measured.infra = R"({"cause":"task","message":"bad"})";
  CHECK(judged(measured).outcome.final);
  CHECK_FALSE(judged(measured).gpu_fault);
  measured.infra = R"({"cause":"image","message":"no PyTorch"})";
  CHECK(judged(measured).outcome.final);
  measured.infra = R"({"cause":"gpus","message":"GPU 0 cannot reach the memory of GPU 1"})";
  CHECK(judged(measured).outcome.final);
  CHECK_FALSE(judged(measured).gpu_fault);
  measured.infra = R"({"cause":"conditions","message":"hot"})";
  CHECK_FALSE(judged(measured).outcome.final);
  measured.infra = "rubbish";
  CHECK(judged(measured).outcome.kind == Kind::infra);
  measured = result("correct", 1);
  measured.infra = R"({"cause":"device","message":"x"})";
  CHECK(judged(measured).outcome.kind == Kind::infra);
}

TEST_CASE("results that contradict themselves or cannot be read are infrastructure") {
  const auto bad = [](auto change) {
    Measured measured = result("correct", 1);
    change(measured);
    return judged(measured).outcome.kind == Kind::infra;
  };
  CHECK(bad([](Measured& m) { m = result("incorrect", 1); }));
  CHECK(bad([](Measured& m) { m = result("perfect", 1); }));
  CHECK(bad([](Measured& m) { m.reward = "{}"; }));
  CHECK(bad([](Measured& m) { m.reward = "[1]"; }));
  CHECK(bad([](Measured& m) { m.reward = R"({"reward":"1"})"; }));
  CHECK(bad([](Measured& m) { m.reward = R"({"reward":-1})"; }));
  CHECK(bad([](Measured& m) { m.reward = R"({"reward":1e999})"; }));
  CHECK(bad([](Measured& m) { m.reward = std::nullopt; }));
  CHECK(bad([](Measured& m) { m.details = std::nullopt; }));
  CHECK(bad([](Measured& m) { m.details = "{"; }));
  CHECK(bad([](Measured& m) { m.details = "[]"; }));
  CHECK(bad([](Measured& m) {  // deeper than the stack is long, were it written again
    const std::string open(200'000, '['), close(200'000, ']');
    m.details->replace(1, 0, "\"deep\":" + open + close + ",");
  }));
}

TEST_CASE("compile.json is read as if a stranger had written it") {
  const auto good =
      read_compiled(R"({"ok":true,"exit_code":0,"seconds":1.5,"log":"a\u001b[1mb","compiler":"g++ 12"})", 100);
  REQUIRE(good);
  CHECK(good->ok);
  CHECK(good->seconds == 1.5);
  CHECK(good->log == "ab");
  CHECK(good->compiler == "g++ 12");
  CHECK(read_compiled(R"({"ok":false})", 100)->exit_code == -1);
  CHECK(read_compiled(R"({"ok":false,"seconds":"x","log":[1],"exit_code":1.5,"compiler":7})", 100)->log.empty());
  CHECK(read_compiled(R"({"ok":false,"log":")" + std::string(200, 'x') + "\"}", 100)->log.size() < 130);
  for (const char* bad : {"", "[]", "{}", R"({"ok":1})", R"({"ok":true)"}) CHECK_FALSE(read_compiled(bad, 100));
}
