// kbench task start, on the repository's own tasks.
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "client/commands.h"
#include "test/unit/client/printed.h"

using namespace kbench::client;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  fs::path path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "kbench-start-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Scratch() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

StartTask start(const fs::path& folder, const std::string& language = "", const std::string& device = "") {
  return {"fused-residual-add-rmsnorm", folder.string(), "tasks", language, device, "", ""};
}

}  // namespace

TEST_CASE("the script that measures a task of two GPUs gives the container two") {
  const Scratch scratch;
  StartTask task = start(scratch.path / "two");
  task.task = "tp-allreduce-residual-rmsnorm";
  CHECK(start_task(task, false) == kOk);
  const std::string script = (scratch.path / "two" / "measure").string();
  CHECK(std::system(("sh -n " + script).c_str()) == 0);
  // Docker reads the value as CSV: the quotes must reach it.
  CHECK_THAT(content(script), Contains(R"(--gpus "\"device=${GPU:-0},${GPU_1:-1}\"")"));
}

TEST_CASE("a working copy has what one needs, in each language") {
  const Scratch scratch;
  const struct {
    const char *language, *device, *stub;
  } cases[] = {{"", "", "solution.cu"},        {"cuda", "cuda", "solution.cu"}, {"cpp", "", "solution.cpp"},
               {"cpp", "cpu", "solution.cpp"}, {"python", "", "solution.py"},   {"python", "cpu", "solution.py"},
               {"", "cpu", "solution.cpp"}};
  int number = 0;
  for (const auto& one : cases) {
    INFO(one.language << " " << one.device);
    const fs::path folder = scratch.path / std::to_string(number++);
    CHECK(start_task(start(folder, one.language, one.device), false) == kOk);
    for (const char* name : {"instruction.md", "task.json", "task.h", "reference.h", "reference.py"})
      CHECK(content(folder / "task" / name).size() > 100);
    CHECK(content(folder / "solution" / one.stub).size() > 100);
    CHECK(std::distance(fs::directory_iterator(folder / "solution"), {}) == 1);
    CHECK_THAT(content(folder / "README.md"), Contains("norm-rope-fusion/fused-residual-add-rmsnorm") &&
                                                  Contains(one.stub) && Contains("/opt/kbench/include") &&
                                                  Contains("kbench-verify compile --task /task"));
    for (const char* script : {"measure", "submit"}) {
      CHECK((fs::status(folder / script).permissions() & fs::perms::owner_exec) != fs::perms::none);
      CHECK(std::system(("sh -n " + (folder / script).string()).c_str()) == 0);
    }
    const bool cuda = *one.device == '\0' ? std::string(one.language) != "cpp" : std::string(one.device) == "cuda";
    CHECK_THAT(content(folder / "measure"), Contains(cuda ? "--device cuda" : "--device cpu"));
    CHECK_THAT(content(folder / "submit"), Contains("--task norm-rope-fusion/fused-residual-add-rmsnorm"));
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) CHECK_THAT(content(entry.path()), !Contains("void independent"));
  }
}

TEST_CASE("task start as JSON is one document that says what was laid out") {
  const Scratch scratch;
  const fs::path said = scratch.path / "said";
  const std::string printed = test::printed(said, [&] { start_task(start(scratch.path / "a", "cpp"), true); });
  const auto made = nlohmann::json::parse(printed);
  CHECK(made["folder"] == (scratch.path / "a").string());
  CHECK(made["task"] == "norm-rope-fusion/fused-residual-add-rmsnorm");
  CHECK(made["device"] == "cpu");
  CHECK(made["language"] == "cpp");
  CHECK(fs::is_regular_file(fs::path(made["folder"].get<std::string>()) / made["solution"].get<std::string>()));
}

TEST_CASE("the agent's files come along when asked for") {
  const Scratch scratch;
  StartTask given = start(scratch.path / "a");
  given.agent = ".agent";
  CHECK(start_task(given, false) == kOk);
  CHECK(fs::is_regular_file(scratch.path / "a/.agent/skills/kernel-task/SKILL.md"));
  CHECK(fs::is_regular_file(scratch.path / "a/.agent/agents/optimiser.md"));
  given.folder = (scratch.path / "b").string();
  given.agent_files = "/nonexistent";
  CHECK_THROWS_WITH(start_task(given, false), Contains("--agent-files"));
}

TEST_CASE("what cannot be started says why") {
  const Scratch scratch;
  const auto fault = [&](auto change) {
    StartTask given = start(scratch.path / "x");
    change(given);
    try {
      start_task(given, false);
      return std::string("none");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(fault([](StartTask& s) { s.task = "no-such"; }), Contains("no-such: no such task in tasks"));
  CHECK_THAT(fault([](StartTask& s) { s.tasks = "/nonexistent"; }), Contains("no such folder of tasks"));
  CHECK_THAT(fault([](StartTask& s) { s.language = "rust"; }), Contains("no language 'rust'"));
  CHECK_THAT(fault([](StartTask& s) { s.device = "tpu"; }), Contains("no device tpu"));
  CHECK_THAT(fault([](StartTask& s) { s.language = "cuda", s.device = "cpu"; }), Contains("not for the cpu"));
  CHECK_THAT(fault([&](StartTask& s) { s.folder = scratch.path.parent_path().string(); }), Contains("not empty"));
  CHECK_FALSE(fs::exists(scratch.path / "x"));  // nothing is left behind
  for (const char* family : {"one", "two"}) {
    fs::create_directories(scratch.path / "tasks" / family / "same" / "environment");
    std::ofstream(scratch.path / "tasks" / family / "same" / "environment" / "task.json") << "{";
  }
  const std::string tasks = (scratch.path / "tasks").string();
  CHECK_THAT(fault([&](StartTask& s) { s.tasks = tasks, s.task = "same"; }), Contains("in several families"));
  CHECK_THAT(fault([&](StartTask& s) { s.tasks = tasks, s.task = "one/same"; }), Contains("task.json: "));
}

TEST_CASE("where tasks come from") {
  unsetenv("KBENCH_TASKS");
  CHECK(tasks_folder("given", "/bin/kbench") == "given");
  CHECK(tasks_folder("", "/nonexistent/bin/kbench") == "tasks");  // the current folder is the repository
  setenv("KBENCH_TASKS", "elsewhere", 1);
  CHECK(tasks_folder("", "/bin/kbench") == "elsewhere");
  unsetenv("KBENCH_TASKS");
}
