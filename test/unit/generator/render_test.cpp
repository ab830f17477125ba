#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "generator/bench.h"
#include "generator/render.h"
#include "test/unit/generator/sample.h"

using namespace kbench;
using namespace kbench::generator;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
namespace fs = std::filesystem;

namespace {

Definition sample_definition() { return parse("family/twice", "f.toml", sample::kToml, sample::kHeader); }

int shell(const std::string& command) { return std::system(command.c_str()); }

}  // namespace

TEST_CASE("a template's fields are filled, and a field without a value is a fault") {
  CHECK(fill("t", "a {{x}} b{{y}}{{x}}", {{"x", "1"}, {"y", "{{z}}"}}) == "a 1 b{{z}}1");
  CHECK_THROWS_WITH(fill("t.md", "{{x}}", {}), Contains("t.md: no value for {{x}}"));
  CHECK_THROWS_WITH(fill("t.md", "{{x", {{"x", ""}}), Contains("without"));
}

TEST_CASE("task.h gives each argument its slot, in order") {
  const std::string header = task_header(sample_definition().problem);
  CHECK_THAT(header,
             Contains("long long N;\n  long long K;\n  long long NK;  // N*K\n  alignas(8) double factor;  // 2\n"
                      "  const float* x;  // [N, K]\n  float* y;  // [NK], written\n"));
  CHECK_THAT(header, Contains("sizeof(kbench_args) == 6 * 8"));
}

TEST_CASE("the private half of the header goes to tests alone") {
  const auto files = render(".", sample_definition());
  CHECK(files.at("environment/reference.h").find("independent") == std::string::npos);
  CHECK(files.at("tests/reference.h").find("independent") != std::string::npos);
  for (const auto& [name, text] : files) {
    INFO(name);
    CHECK(text.find("{{") == std::string::npos);
    CHECK(text.ends_with("\n"));
    CHECK(text.find('\r') == std::string::npos);
    if (name.starts_with("environment/")) CHECK(text.find("control(") == std::string::npos);
  }
  CHECK(files.at("environment/instruction.md") == files.at("instruction.md"));
  CHECK(files.at("environment/task.json") == files.at("tests/task.json"));
}

TEST_CASE("a rule stands in every file that is read") {
  const std::string ruled =
      sample::with(sample::kToml, "bound = \"memory\"\n", "bound = \"memory\"\n[rules]\nkernels_max = 1\n");
  const Definition definition = parse("family/twice", "f.toml", ruled, sample::kHeader);
  const auto files = render(".", definition), plain = render(".", sample_definition());
  CHECK_THAT(files.at("instruction.md"),
             Contains("a call executes at most 1 kernel**") && Contains("`rule_violation`"));
  CHECK_THAT(files.at("task.toml"), Contains("metric = \"GB/s\"\nkernels_max = 1\ngpus_needed"));
  CHECK_THAT(files.at("tests/task.json"), Contains("\"rules\": {\n  \"kernels_max\": 1\n }"));
  CHECK_THAT(catalog_json(".", {definition}), Contains("\"kernels_max\": 1"));
  for (const char* file : {"instruction.md", "task.toml", "tests/task.json"}) {
    INFO(file);
    CHECK_THAT(plain.at(file), !Contains("kernels_max") && !Contains("rule_violation"));
  }
  CHECK_THAT(catalog_json(".", {sample_definition()}), !Contains("kernels_max"));
}

TEST_CASE("the stubs build, and the reference in Python computes") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path().string();
  write(folder, render(".", sample_definition()), false);
  const std::string include = " -I" + folder + "/environment -Isdk ";
  CHECK(shell("g++ -std=c++20 -Wall -Wextra -Werror -shared -fPIC" + include + folder +
              "/environment/solution/solution.cpp -o " + folder + "/stub.so") == 0);
  CHECK(shell("python3 -m py_compile " + folder + "/environment/solution/solution.py") == 0);
  // NumPy is not needed: anything with its `nbytes`, `ctypes.data` and `flags` will do.
  std::ofstream(scratch.path() / "environment" / "try.py") << R"(
import array, sys, types
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from reference import reference
class Array:
    def __init__(self, values):
        self.values = array.array("f", values)
        self.nbytes = 4 * len(values)
        self.ctypes = types.SimpleNamespace(data=self.values.buffer_info()[0])
        self.flags = {"C_CONTIGUOUS": True}
x, y = Array(range(15)), Array([0] * 15)
reference(N=5, K=3, x=x, y=y)
assert list(y.values) == [2.0 * i for i in range(15)], list(y.values)
reference(N=5, K=3, x=x, y=y, factor=3)
assert list(y.values) == [3.0 * i for i in range(15)]
for wrong in (dict(N=5, K=3, x=x), dict(N=5, K=4, x=x, y=y), dict(N=5, K=3, x=x, y=y, z=1), dict(N=5, K=3, x=7, y=y)):
    try:
        reference(**wrong)
    except (TypeError, ValueError) as error:
        print(error)
    else:
        sys.exit(f"accepted {wrong}")
)";
  CHECK(shell("XDG_CACHE_HOME=" + folder + "/cache python3 " + folder + "/environment/try.py " + folder +
              "/environment sdk/python > " + folder + "/log") == 0);
}

TEST_CASE("a task on two GPUs says so in every file, its stubs build, and its reference in Python computes") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path().string();
  const auto files = render(".", parse("family/twice", "f.toml", sample::toml_of_two(), sample::kHeaderOfTwo));
  write(folder, files, false);
  CHECK_THAT(
      files.at("environment/task.h"),
      Contains("  const float* x[2];  // [N, K], another on each GPU\n  float* y[2];  // [NK], written, another on "
               "each GPU\n};\nstatic_assert(sizeof(kbench_args) == 8 * 8);") &&
          Contains("kbench_gpus = 2;") && Contains("kbench_stream_of("));
  CHECK_THAT(files.at("instruction.md"), Contains("Credited for one call and GPU: **8*NK**") &&
                                             Contains("**Several GPUs.**") &&
                                             Contains("| `x` | f32 | [N, K] | read, another"));
  CHECK_THAT(files.at("task.toml"), Contains("gpus_needed = 2"));
  CHECK_THAT(files.at("environment/docker-compose.yaml"),
             Contains("device_ids: [\"${KBENCH_GPU:-0}\", \"${KBENCH_GPU_1:-1}\"]"));
  CHECK_THAT(files.at("tests/task.json"), Contains("\"gpus\": 2") && Contains("\"placement\": \"shard\""));
  CHECK_THAT(files.at("environment/solution/solution.py"), Contains("lists of PyTorch tensors, one a GPU"));
  CHECK(shell("g++ -std=c++20 -Wall -Wextra -Werror -shared -fPIC -I" + folder + "/environment -Isdk " + folder +
              "/environment/solution/solution.cpp -o " + folder + "/stub.so") == 0);
  std::ofstream(scratch.path() / "environment" / "try.py") << R"(
import array, sys, types
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from reference import reference
class Array:
    def __init__(self, values):
        self.values = array.array("f", values)
        self.nbytes = 4 * len(values)
        self.ctypes = types.SimpleNamespace(data=self.values.buffer_info()[0])
        self.flags = {"C_CONTIGUOUS": True}
x, y = [Array(range(15)), Array(range(15, 30))], [Array([0] * 15), Array([0] * 15)]
reference(N=5, K=3, x=x, y=y)
for gpu in (0, 1):
    assert list(y[gpu].values) == [2.0 * (i + 15 * gpu) for i in range(15)], list(y[gpu].values)
try:
    reference(N=5, K=3, x=x[:1], y=y)
except ValueError as error:
    print(error)
else:
    sys.exit("accepted one tensor")
)";
  CHECK(shell("XDG_CACHE_HOME=" + folder + "/cache python3 " + folder + "/environment/try.py " + folder +
              "/environment sdk/python > " + folder + "/log") == 0);
}

TEST_CASE("a folder is written once, checked, and mended") {
  const ScratchFolder scratch;
  const std::string folder = (scratch.path() / "task").string();
  const std::map<std::string, std::string> files{{"a.txt", "1\n"}, {"b/c.sh", "2\n"}};
  CHECK(write(folder, files, true).size() == 2);
  CHECK(!fs::exists(folder));
  CHECK_THAT(write(folder, files, false),
             Equals(std::vector<std::string>{folder + "/a.txt: new", folder + "/b/c.sh: new"}));
  CHECK(write(folder, files, true).empty());
  CHECK((fs::status(folder + "/b/c.sh").permissions() & fs::perms::owner_exec) != fs::perms::none);
  std::ofstream(folder + "/b/more") << "x";
  std::ofstream(folder + "/a.txt") << "3\n";
  const std::vector<std::string> differs = write(folder, files, true);
  REQUIRE(differs.size() == 2);
  CHECK_THAT(differs[0], Contains("b/more: is not generated"));
  CHECK_THAT(differs[1], Contains("a.txt: differs"));
  CHECK_THAT(
      write(folder, files, false),
      Equals(std::vector<std::string>{folder + "/b/more: removed, it is not generated", folder + "/a.txt: changed"}));
  CHECK(write(folder, files, true).empty());
  CHECK(!fs::exists(folder + "/b/more"));
}
