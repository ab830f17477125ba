// The rule kernels_max, on a device that says it has kernels, with real workers that find a stand-in for CUPTI.
#include <cstdlib>

#include "kbench/events.h"
#include "test/unit/grade/grading.h"
#include "test/unit/worker/fake_cupti.h"
#include "verifier/grade/prepare.h"

using namespace kbench;
using namespace kbench::grade;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

constexpr int kOutputs = 2;  // of the task: so many kernels the trusted worker executes, where there are kernels
static_assert(fake_cupti::kEach == kOutputs);

// The cpu device, but it says that it has kernels.
class WithKernels final : public verify::Device {
 public:
  const verify::Facts& facts() const override { return cpu_->facts(); }
  verify::Bounds bounds() const override { return cpu_->bounds(); }
  std::uint64_t free_bytes() override { return cpu_->free_bytes(); }
  bool has_kernels() const override { return true; }
  std::unique_ptr<verify::Buffer> allocate(std::uint64_t bytes, int gpu) override { return cpu_->allocate(bytes, gpu); }
  std::unique_ptr<verify::SharedBuffer> allocate_shared(std::uint64_t bytes, int gpu) override {
    return cpu_->allocate_shared(bytes, gpu);
  }
  void read(std::byte* to, verify::Region from) override { cpu_->read(to, from); }
  void write(verify::Region to, const std::byte* from) override { cpu_->write(to, from); }
  void zero(verify::Region region) override { cpu_->zero(region); }
  void fill(const verify::Fill& fill, std::uint64_t seed) override { cpu_->fill(fill, seed); }
  void poison(verify::Region region, std::uint64_t key) override { cpu_->poison(region, key); }
  std::int64_t unpoisoned(verify::Region region, std::uint64_t key) override { return cpu_->unpoisoned(region, key); }
  std::uint64_t hash(verify::Region region) override { return cpu_->hash(region); }
  void copy(verify::Copy copy) override { cpu_->copy(copy); }
  verify::PassSums pass(const verify::PassPlan& plan) override { return cpu_->pass(plan); }
  verify::Repetition repeat(const verify::RepetitionPlan& plan, verify::Peer& peer) override {
    return cpu_->repeat(plan, peer);
  }
  void run_reference(Reference* reference, const void* args) override { cpu_->run_reference(reference, args); }
  double canary() override { return cpu_->canary(); }
  std::vector<std::string> complaints() override { return {}; }

 private:
  std::unique_ptr<verify::Device> cpu_ = verify::open_cpu_device();
};

struct Observed {
  std::string end;  // "verdict rule: reason", "fault cause: message", or "passed"
  nlohmann::json rules;
};

// A grading up to where the timed runs would begin.
Observed observed(const std::string& source, int kernels_max, const std::string& libraries) {
  const TemporaryFolder tests, sources, out;
  nlohmann::json task = json_of(kTask + "/task.json");
  task["test"] = nlohmann::json::array({task["tiny"][0]});  // what takes the time is the size
  task["test"][0]["name"] = "test0";
  if (kernels_max > 0) task["rules"] = {{"kernels_max", kernels_max}};
  put(tests.path + "/task.json", task.dump());
  for (const char* file : {"/task.h", "/reference.h"}) put(tests.path + file, text_of(kTask + file));
  put(sources.path + "/solution.cpp", source);
  ::setenv("LD_LIBRARY_PATH", libraries.c_str(), 1);
  Options options;
  options.tests = tests.path;
  options.submission = sources.path;
  options.reference = reference();
  options.out = out.path;
  options.uid_base = static_cast<uid_t>(uid_base());
  Session session(options);
  Observed result;
  try {
    session.reporter = report::Reporter::open(out.path, "");
    load_task(session);
    session.device = std::make_unique<WithKernels>();
    take_artefact(session);
    load_reference(session);
    make_workspace(session);
    time_checks(session);
    draw_plans(session);
    session.calibrations.resize(session.graded);  // the times of this run mean nothing
    observe(session);
    result.end = "passed";
  } catch (const Finding& finding) {
    result.end = finding.verdict + " " + finding.rule + ": " + finding.what();
  } catch (const GradeFault& fault) {
    result.end = "fault " + fault.cause + ": " + fault.what();
  }
  const nlohmann::json details = details_of(session);
  if (details.contains("rules")) result.rules = details["rules"];
  return result;
}
Observed observed(const std::string& source, int kernels_max) {
  return observed(source, kernels_max, KBENCH_FAKE_CUPTI);
}

// Executes a kernel more in every call, and does as it is told when it finds itself watched.
std::string with_fake(const std::string& statement) {
  return submission(
      "  using F = void(const char*);\n  using N = void(int);\n"
      "  void* watcher = dlopen(\"libcupti.so.13\", RTLD_NOW | RTLD_NOLOAD);\n  (void)sizeof(F), (void)sizeof(N);\n"
      "  if (watcher) " +
          statement + "\n",
      "", "#include <dlfcn.h>");
}
const std::string kOneMore = "((F*)dlsym(watcher, \"fake_cupti_execute\"))(\"one_more\");";

}  // namespace

TEST_CASE("observe: calls within the rule pass, and the details say what was seen") {
  const Observed found = observed(submission("", ""), kOutputs);
  CHECK(found.end == "passed");
  CHECK(found.rules["applies"] == true);
  CHECK(found.rules["kernels_max"] == kOutputs);
  REQUIRE(found.rules["observed"].size() == 1);
  CHECK(found.rules["observed"][0]["kernels"] == kOutputs);
  CHECK(found.rules["observed"][0]["calls"].get<int>() % measure::kRepetitions == 0);
  CHECK(found.rules["observed"][0]["names"] == "each x2");
}

TEST_CASE("observe: one kernel too many is a violation that names them") {
  const Observed found = observed(with_fake(kOneMore), kOutputs);
  CHECK_THAT(found.end, StartsWith("rule_violation kernels_max: shape ") &&
                            Contains("observed run, repetition 1: 3 kernels, at most 2 allowed: one_more, each x2"));
  CHECK(found.rules["observed"][0]["kernels"] == 3);
  CHECK(observed(with_fake(kOneMore), kOutputs + 1).end == "passed");
}

TEST_CASE("observe: a call without any kernel is a violation") {
  CHECK_THAT(observed(with_fake("((N*)dlsym(watcher, \"fake_cupti_each\"))(0);"), kOutputs).end,
             StartsWith("rule_violation kernels_max: ") && Contains("no kernel of this process was seen"));
}

TEST_CASE("observe: what the observed run puts out must be right") {
  CHECK_THAT(observed(with_fake("return 0;"), kOutputs).end, StartsWith("incorrect : ") && Contains("observed run"));
}

TEST_CASE("observe: who breaks the counting gets no reward, and the blame") {
  CHECK_THAT(observed(with_fake("((void (*)())dlsym(watcher, \"fake_cupti_break\"))();"), kOutputs).end,
             StartsWith("runtime_error : ") && Contains("CUPTI no longer tells"));
}

TEST_CASE("observe: where kernels cannot be counted nothing passes, and nobody is blamed") {
  CHECK_THAT(observed(submission("", ""), kOutputs, "/nowhere").end, StartsWith("fault observer: "));
}

TEST_CASE("observe: a task without the rule is not observed") {
  const Observed found = observed(submission("", ""), 0, "/nowhere");
  CHECK(found.end == "passed");
  CHECK(found.rules.is_null());
}

TEST_CASE("observe: on the cpu device the rule does not apply, and the details say so") {
  const TemporaryFolder tests, sources;
  nlohmann::json task = json_of(kTask + "/task.json");
  task["rules"] = {{"kernels_max", 1}};
  put(tests.path + "/task.json", task.dump());
  for (const char* file : {"/task.h", "/reference.h"}) put(tests.path + file, text_of(kTask + file));
  put(sources.path + "/solution.cpp", submission("", ""));
  const Grading g = grade_folder(sources.path, "", tests.path);
  CHECK(g.verdict() == "correct");
  CHECK(g.details["rules"] == nlohmann::json{{"kernels_max", 1}, {"applies", false}});
}

TEST_CASE("observe: a count is judged at its edges") {
  const auto judged = [](int kernels) {
    try {
      judge_kernels({{"here", 1, "a"}, {"there", kernels, "b x2"}}, 3);
    } catch (const Finding& finding) {
      return finding.verdict + " " + finding.rule + ": " + finding.what();
    }
    return std::string();
  };
  CHECK(judged(1).empty());
  CHECK(judged(3).empty());
  CHECK(judged(4) == "rule_violation kernels_max: there: 4 kernels, at most 3 allowed: b x2");
  CHECK(judged(0) == "rule_violation kernels_max: there: no kernel of this process was seen");
  CHECK_FALSE(judged(-1).empty());
  CHECK_NOTHROW(judge_kernels({}, 1));
}
