// The plan: every line of it begins a definition that loads, and the counts of what is done are right.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "generator/bench.h"
#include "test/unit/generator/sample.h"

using namespace kbench;
using namespace kbench::generator;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("every line of the plan begins a definition that loads") {
  const std::vector<Planned> plan = read_plan("catalog/plan");
  CHECK(plan.size() == 400);
  std::set<std::string> families, names;
  for (const Planned& planned : plan) {
    INFO(planned.place << " " << planned.task);
    families.insert(planned.family);
    CHECK(names.insert(planned.task).second);
    const auto files = begin_definition(planned);
    const std::string base = planned.family + "/" + planned.task;
    REQUIRE(files.size() == 2);
    std::optional<Definition> begun;
    CHECK_NOTHROW(begun = parse(base, base + ".toml", files.at(base + ".toml"), files.at(base + ".h"),
                                Tolerances::to_be_measured));
    if (begun) CHECK((begun->problem.kernels_max == 1) == (planned.family == "megakernel"));
  }
  CHECK(families.size() == 19);
}

TEST_CASE("a definition's beginning compiles and is refused by what measures") {
  const std::vector<Planned> plan = read_plan("catalog/plan/raw-cuda.jsonl");
  const auto files = begin_definition(plan.at(0));
  const std::string base = plan[0].family + "/" + plan[0].task;
  const Definition definition =
      parse(base, base + ".toml", files.at(base + ".toml"), files.at(base + ".h"), Tolerances::to_be_measured);
  CHECK_NOTHROW(Author(".", definition));
}

TEST_CASE("a plan that cannot be read names file and line") {
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "p.jsonl").string();
  CHECK_THROWS_WITH(read_plan(file), Contains("p.jsonl: cannot be read"));
  std::ofstream(file) << R"({"family": "f", "task": "t", "title": "T"})" << "\n{\n";
  CHECK_THROWS_WITH(read_plan(file), Contains("p.jsonl:2: "));
  std::ofstream(file) << R"({"family": "f", "title": "T"})" << "\n";
  CHECK_THROWS_WITH(read_plan(file), Contains("p.jsonl:1: ") && Contains("task"));
  std::ofstream(file) << R"({"family": "f", "task": "t", "title": "T"})" << "\n";
  CHECK(read_plan(file).size() == 1);
  CHECK_THROWS_WITH(begin_definition(read_plan(file)[0]), Contains("p.jsonl:1: "));
  fs::create_directory(scratch.path() / "empty");
  CHECK_THROWS_WITH(read_plan((scratch.path() / "empty").string()), Contains("no tasks in it"));
}

TEST_CASE("status counts what is written, measured and linted") {
  const ScratchFolder scratch;
  const std::string root = scratch.path().string();
  fs::create_directories(scratch.path() / "catalog" / "family");
  const auto put = [&](const std::string& name, const std::string& toml) {
    std::ofstream(scratch.path() / "catalog" / "family" / (name + ".toml")) << toml;
    std::ofstream(scratch.path() / "catalog" / "family" / (name + ".h")) << sample::kHeader;
  };
  put("one", sample::kToml);
  put("two", sample::kToml.substr(0, sample::kToml.find("[precision]")));
  put("four", sample::kToml + "\n[lint]\nhash = \"of another\"\nconditions = \"by hand\"\nmargin = 4\n");
  const std::string hash = load(root, "family/one").problem.hash;
  put("five", sample::kToml + "\n[lint]\nhash = \"" + load(root, "family/four").problem.hash +
                  "\"\nconditions = \"by hand\"\nmargin = 4\n");
  const std::vector<Planned> plan{{"p:1", "family", "one", "", ""},
                                  {"p:2", "family", "two", "", ""},
                                  {"p:3", "family", "three", "", ""},
                                  {"p:4", "other", "more", "", ""}};
  const std::vector<FamilyStatus> status = status_of(root, plan);
  REQUIRE(status.size() == 2);
  CHECK(status[0].planned == 3);
  CHECK(status[0].written == 4);
  CHECK(status[0].measured == 3);
  CHECK(status[0].measured_on_gpu == 0);
  CHECK(status[0].faulty == std::vector<std::string>{"family/two"});
  CHECK(status[0].unplanned == std::vector<std::string>{"family/five", "family/four"});
  CHECK(status[0].linted == 0);  // the problem's hash has its name in it: of another task
  CHECK(status[1].written == 0);
}
