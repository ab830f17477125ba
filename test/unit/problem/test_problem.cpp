#include <unistd.h>
#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "verifier/problem/problem.h"

using namespace kbench;
using nlohmann::json;

namespace {

json sound() {
  return json::parse(R"json({
    "family": "norm-rope", "name": "add-norm", "title": "Add and norm", "version": "1", "hash": "", "gpus": 1, "metric": "GB/s",
    "dims": ["M", "C"], "derived": [{"name": "pairs", "expression": "C//2"}],
    "scalars": [{"name": "eps", "type": "f32", "value": 1e-5}],
    "tensors": [
      {"name": "x", "dtype": "bf16", "shape": ["M", "C"], "role": "input", "gen": "normal(0,1)"},
      {"name": "t", "dtype": "f32", "shape": ["M", "pairs", 2], "role": "inout", "gen": "zeros", "rule": "exact"},
      {"name": "y", "dtype": "bf16", "shape": ["M", "C"], "role": "output", "rule": "near(scale=row)", "tolerance": {"max": 4, "rms": 1.5}}],
    "work": {"flops": "6*M*C", "bytes": "2*(4*M*C + C)", "bound": "memory"}, "peak_factor": 1,
    "tiny": [{"name": "tiny", "dims": {"M": 7, "C": 76}}],
    "test": [{"name": "test", "dims": {"M": 1000, "C": 4096}}],
    "graded": [{"name": "a", "dims": {"M": 43008, "C": 8192}}, {"name": "b", "dims": {"M": 81920, "C": 8192}}],
    "odd": {"M": [1, 333]}, "languages": ["cuda", "cpp", "python"], "devices": ["cpu", "cuda"]
})json");
}

std::string faults_of(const json& definition) {
  try {
    problem_from_json(definition.dump());
  } catch (const BadProblem& fault) {
    return fault.what();
  }
  return "";
}

// The sound definition with one change has exactly this fault.
void has_fault(const std::string& pointer, const json& value, const std::string& fault) {
  json definition = sound();
  definition[json::json_pointer(pointer)] = value;
  INFO(pointer << " = " << value.dump());
  CHECK_THAT(faults_of(definition), Catch::Contains(fault));
}

}  // namespace

TEST_CASE("a sound definition is read whole", "[problem]") {
  const Problem problem = problem_from_json(sound().dump());
  CHECK(problem.metric == Metric::gbytes);
  CHECK(problem.argument_dims() == std::vector<std::string>{"M", "C", "pairs"});
  CHECK(problem.graded[1].dims == Dims{{"M", 81920}, {"C", 8192}, {"pairs", 4096}});
  REQUIRE(problem.find("t") != nullptr);
  CHECK(problem.find("t")->role == Role::inout);
  CHECK(problem.find("none") == nullptr);
  CHECK(problem.elements(*problem.find("t"), problem.tiny[0].dims) == 7 * 76);
  CHECK(problem.bytes(*problem.find("t"), problem.tiny[0].dims) == 4 * 7 * 76);
  CHECK(problem.credited(problem.tiny[0].dims) == 2 * (4 * 7 * 76 + 76));
  CHECK(problem.tensors[2].tolerance.max == 4);
  CHECK(problem.odd.at("M") == std::pair<std::int64_t, std::int64_t>{1, 333});
  CHECK(&problem.graded_on("cuda") == &problem.graded);
  CHECK(&problem.graded_on("cpu") == &problem.test);
}

TEST_CASE("writing is stable and reading gives it back", "[problem]") {
  const std::string once = to_json(problem_from_json(sound().dump()));
  CHECK(to_json(problem_from_json(once)) == once);
  json reordered = sound();
  CHECK(to_json(problem_from_json(reordered.dump(7))) == once);
  reordered["rules"] = {{"kernels_max", kKernelsMax}};
  const std::string ruled = to_json(problem_from_json(reordered.dump()));
  CHECK(ruled != once);
  CHECK(to_json(problem_from_json(ruled)) == ruled);
  CHECK(once.find("pairs\": 4096") == std::string::npos);  // derived dims are not repeated
}

namespace {

// Of two GPUs: x another on each, t and y the same.
json on_two_gpus() {
  json definition = sound();
  definition["gpus"] = 2;
  for (json& tensor : definition["tensors"]) tensor["placement"] = tensor["name"] == "x" ? "shard" : "replicated";
  return definition;
}

}  // namespace

TEST_CASE("on several GPUs each tensor is there once a GPU, in the order of the arguments", "[problem]") {
  const Problem problem = problem_from_json(on_two_gpus().dump());
  CHECK(problem.tensors.size() == 3);
  CHECK(problem.tensors[0].placement == Placement::shard);
  CHECK(to_json(problem_from_json(to_json(problem))) == to_json(problem));
  const Problem all = spread(problem);
  std::string labels;
  for (const Tensor& tensor : all.tensors) labels += tensor.label() + " ";
  CHECK(labels == "x[0] x[1] t[0] t[1] y[0] y[1] ");
  CHECK(all.find("t", 1) == &all.tensors[3]);
  CHECK(all.find("t") == &all.tensors[2]);
  CHECK(all.find("t", 2) == nullptr);
  CHECK(all.credited(all.tiny[0].dims) == problem.credited(problem.tiny[0].dims));
}

TEST_CASE("on one GPU nothing is spread, and nothing of it is written", "[problem]") {
  const Problem problem = problem_from_json(sound().dump());
  CHECK(to_json(problem).find("placement") == std::string::npos);
  CHECK(to_json(spread(problem)) == to_json(problem));
  CHECK(problem.tensors[0].label() == "x");
}

TEST_CASE("placements and GPUs must fit together", "[problem]") {
  json definition = sound();
  definition["tensors"][0]["placement"] = "shard";
  CHECK_THAT(faults_of(definition), Catch::Contains("tensors[0].placement: is of tasks on several GPUs"));
  definition = on_two_gpus();
  definition["tensors"][2].erase("placement");
  CHECK_THAT(faults_of(definition), Catch::Contains("tensors[2].placement: is missing: the task has 2 GPUs"));
  for (const char* wrong : {"one", "both", "Shard"}) {
    definition["tensors"][2]["placement"] = wrong;
    CHECK_THAT(faults_of(definition), Catch::Contains("is none of shard, replicated"));
  }
  definition = on_two_gpus();
  definition["rules"] = {{"kernels_max", 1}};
  CHECK_THAT(faults_of(definition), Catch::Contains("rules.kernels_max: is not of tasks on several GPUs"));
  definition = on_two_gpus();
  definition["gpus"] = kGpusMax;
  CHECK(faults_of(definition).empty());
  for (int i = 0; i < 6; ++i) {
    json more = definition["tensors"][0];
    more["name"] = "more" + std::to_string(i);
    definition["tensors"].insert(definition["tensors"].begin(), more);
  }
  CHECK_THAT(faults_of(definition), Catch::Contains("tensors: more than 64, each counted once a GPU"));
}

TEST_CASE("counts beyond 2^31 are exact", "[problem]") {
  json definition = sound();
  definition["graded"][0]["dims"] = {{"M", 70000}, {"C", 65538}};
  const Problem problem = problem_from_json(definition.dump());
  CHECK(problem.elements(problem.tensors[0], problem.graded[0].dims) == 4'587'660'000);
  CHECK(problem.bytes(problem.tensors[1], problem.graded[0].dims) == 18'350'640'000);
}

TEST_CASE("a scalar tensor has one element, an empty one none", "[problem]") {
  json definition = sound();
  definition["tensors"][0]["shape"] = json::array();
  definition["tensors"][1]["shape"] = {"M-M"};
  const Problem problem = problem_from_json(definition.dump());
  CHECK(problem.elements(problem.tensors[0], problem.tiny[0].dims) == 1);
  CHECK(problem.elements(problem.tensors[1], problem.tiny[0].dims) == 0);
}

TEST_CASE("every kind of fault is named with its place", "[problem]") {
  has_fault("/family", "Norm", "family: must be of a-z");
  has_fault("/name", "", "name: must be of a-z");
  has_fault("/version", "", "version: must not be empty");
  has_fault("/version", 1, "version: must be a string");
  has_fault("/title", std::string(kTextMax + 1, 'x'), "title: is longer than 4000");
  has_fault("/metric", "MB/s", "metric: 'MB/s' is neither TFLOP/s nor GB/s");
  has_fault("/gpus", 0, "gpus: must be 1 to 8");
  has_fault("/gpus", 9, "gpus: must be 1 to 8");
  has_fault("/gpus", 1.5, "gpus: must be 1 to 8");
  has_fault("/peak_factor", -1, "peak_factor: must not be negative");
  has_fault("/peak_factor", nullptr, "peak_factor: must be a finite number");
  has_fault("/dims", {"M", "M"}, "dims[1]: 'M' occurs twice");
  has_fault("/dims", {"M", "9C"}, "dims[1]: '9C' is no identifier");
  has_fault("/dims", "M", "dims: must be an array");
  has_fault("/dims", {1}, "dims: must hold strings");
  has_fault("/derived/0/name", "M", "derived[0].name: 'M' occurs twice");
  has_fault("/derived/0/expression", "Q//2", "tiny[0].dims: derived: 'Q//2': unknown name 'Q'");
  has_fault("/scalars/0/name", "x", "tensors[0].name: 'x' occurs twice");
  has_fault("/scalars/0/type", "f16", "scalars[0].type: 'f16' is none of f32, f64, i64");
  has_fault("/scalars/0/value", "x", "scalars[0].value: must be a finite number");
  has_fault("/scalars/0", {{"name", "n"}, {"type", "i64"}, {"value", 0.5}}, "scalars[0].value: must be whole");
  has_fault("/tensors/0/dtype", "fp8", "tensors[0].dtype: unknown dtype 'fp8'");
  has_fault("/tensors/0/role", "in", "tensors[0].role: 'in' is none of");
  has_fault("/tensors/0/shape", {"Q"}, "tensors[0].shape: 'Q': unknown name 'Q' at column 1, for tiny[0]");
  has_fault("/tensors/0/shape", {"M-8"}, "tensors[0].shape: 'M-8': an extent is -1, for tiny[0]");
  has_fault("/tensors/0/shape", {true}, "tensors[0].shape: must hold expressions or whole numbers");
  has_fault("/tensors/0/shape", json(std::vector<std::string>(kTensorRankMax + 1, "1")),
            "tensors[0].shape: has more than 6");
  has_fault("/tensors/0/shape", {"M*C*C*C*C*C"}, "tensors[0].shape: 'M*C*C*C*C*C': overflow of 64 bits");
  has_fault("/tensors/0/shape", {"M*C*C*C", "C*C"}, "tensors[0].shape: tensor 'x': overflow of 64 bits");
  has_fault("/tensors/0/shape", {"M*C*M*C"}, "more than 1099511627776 bytes");
  has_fault("/tensors/0/gen", "", "tensors[0].gen: is missing");
  has_fault("/tensors/0/rule", "exact", "tensors[0].rule: an input has none");
  has_fault("/tensors/1/rule", "", "tensors[1].rule: is missing");
  has_fault("/tensors/2/gen", "zeros", "tensors[2].gen: an output has none");
  has_fault("/tensors/2/tolerance", {{"max", -1}}, "tensors[2].tolerance.max: must not be negative");
  has_fault("/tensors/2/tolerance", {{"rms", 1}}, "tensors[2].tolerance.max: is missing");
  has_fault("/tensors/2/tolerance", 3, "tensors[2].tolerance: must be an object");
  has_fault("/tensors/0/tipe", 1, "tensors[0].tipe: unknown key");
  has_fault("/tensors/0", {{"name", "z"}, {"dtype", "f32"}, {"shape", {"M"}}, {"role", "output"}, {"rule", "exact"}},
            "tensors[1]: inputs and in-out tensors come before the outputs");
  has_fault("/tensors", json::array(), "tensors: no output");
  has_fault("/tensors", json(std::vector<json>(kTensorsMax + 1, sound()["tensors"][0])), "tensors: has more than 64");
  has_fault("/work/flops", "M*Q", "work.flops: 'M*Q': unknown name 'Q'");
  has_fault("/work/bytes", "-M", "work.bytes: '-M': negative");
  has_fault("/work/bytes", "M-M", "work: the metric's work is 0, for tiny[0]");
  has_fault("/work", 1, "work: must be an object");
  has_fault("/tiny", json::array(), "tiny: must hold one shape");
  has_fault("/test", json::array(), "test: must hold a shape");
  has_fault("/graded", json::array(), "graded: must hold a shape, since the task runs on cuda");
  has_fault("/graded/1/name", "a", "graded[1].name: 'a' occurs twice");
  has_fault("/graded/0/dims", {{"M", 1}}, "graded[0].dims.C: is missing");
  has_fault("/graded/0/dims/M", 0, "graded[0].dims.M: must be a whole number of at least 1");
  has_fault("/graded/0/dims/M", 1.5, "graded[0].dims.M: must be a whole number");
  has_fault("/graded/0/dims/Q", 1, "graded[0].dims.Q: unknown key");
  has_fault("/odd", {{"M", {3, 2}}}, "odd.M: must be [least, most]");
  has_fault("/odd", {{"M", 3}}, "odd.M: must be [least, most]");
  has_fault("/odd", {{"Q", {1, 2}}}, "odd.Q: unknown key");
  has_fault("/languages", {"rust"}, "languages: 'rust' is not known");
  has_fault("/languages", json::array(), "languages: names none");
  has_fault("/devices", {"tpu"}, "devices: 'tpu' is not known");
  has_fault("/rules", 1, "rules: must be an object");
  has_fault("/rules", json::object(), "rules.kernels_max: is missing");
  has_fault("/rules", {{"kernels_max", 0}}, "rules.kernels_max: must be a whole number from 1 to 1000");
  has_fault("/rules", {{"kernels_max", kKernelsMax + 1}}, "rules.kernels_max: must be a whole number from 1 to 1000");
  has_fault("/rules", {{"kernels_max", 1.5}}, "rules.kernels_max: must be a whole number");
  has_fault("/rules", {{"kernels_max", 1}, {"launches", 1}}, "rules.launches: unknown key");
  has_fault("/extra", 1, "extra: unknown key");
}

TEST_CASE("a rule of the cuda device needs that device", "[problem]") {
  json definition = sound();
  definition["rules"] = {{"kernels_max", 1}};
  CHECK(problem_from_json(definition.dump()).kernels_max == 1);
  definition["devices"] = {"cpu"};
  CHECK_THAT(faults_of(definition), Catch::Contains("rules.kernels_max: is of the cuda device"));
}

TEST_CASE("the ends of the odd ranges are checked too", "[problem]") {
  json definition = sound();
  definition["tensors"][0]["shape"] = {"M-5", "C"};
  definition["tiny"][0]["dims"]["M"] = 7;
  CHECK_THAT(faults_of(definition), Catch::Contains("'M-5': an extent is -4, for the least odd dims"));
}

TEST_CASE("all faults are reported at once, one a line", "[problem]") {
  json definition = sound();
  definition["metric"] = "x";
  definition["tensors"][0]["dtype"] = "y";
  definition.erase("version");
  definition["test"][0]["dims"]["C"] = -1;
  const std::string faults = faults_of(definition);
  CHECK(std::count(faults.begin(), faults.end(), '\n') == 3);
  for (const char* fault : {"metric:", "tensors[0].dtype:", "version: is missing", "test[0].dims.C:"}) {
    CHECK_THAT(faults, Catch::Contains(fault));
  }
}

TEST_CASE("what is no definition at all is refused", "[problem]") {
  CHECK_THROWS_WITH(problem_from_json("{"), Catch::Contains("not JSON"));
  CHECK_THROWS_WITH(problem_from_json("[]"), Catch::Contains("must be an object"));
  CHECK_THROWS_WITH(problem_from_json(R"({"tensors":[[[[[[[[1]]]]]]]]})"), Catch::Contains("nested deeper than 8"));
  CHECK_THROWS_WITH(problem_from_json(R"({"tensors":[[[[[[[1]]]]]]]})"),
                    Catch::Contains("tensors[0]: must be an object"));
  const std::string deep(kProblemBytesMax / 4, '[');
  CHECK_THROWS_WITH(problem_from_json("{\"tensors\":" + deep + std::string(deep.size(), ']') + "}"),
                    Catch::Contains("nested deeper than 8"));
  CHECK_THROWS_WITH(problem_from_json(std::string(kProblemBytesMax + 1, ' ')),
                    Catch::Contains("longer than 1048576 bytes"));
  CHECK_THROWS_WITH(load_problem("/nonexistent/task.json"),
                    Catch::Contains("/nonexistent/task.json: cannot be opened"));
}

TEST_CASE("a file is read, its faults name it", "[problem]") {
  char path_buffer[] = "/tmp/problem-XXXXXX";
  REQUIRE(close(mkstemp(path_buffer)) == 0);
  const std::string path = path_buffer;
  std::ofstream(path) << sound().dump();
  CHECK(load_problem(path).name == "add-norm");
  std::ofstream(path) << "{}";
  CHECK_THROWS_WITH(load_problem(path), Catch::Contains(path) && Catch::Contains("tensors: is missing"));
  std::remove(path.c_str());
}

TEST_CASE("the table of dtypes agrees with itself", "[problem]") {
  for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
    const DType dtype = static_cast<DType>(i);
    CHECK(dtype_named(name_of(dtype)) == dtype);
    CHECK(bytes_of(dtype) >= 1);
  }
  CHECK_FALSE(dtype_named("int8").has_value());
  CHECK(unit_roundoff(DType::bf16) == 1.0 / 256);
  CHECK(unit_roundoff(DType::f32) == 1.0 / 16777216);
  CHECK(unit_roundoff(DType::f64) == 1.0 / 9007199254740992);
  CHECK(unit_roundoff(DType::e4m3) == 1.0 / 16);
  CHECK(unit_roundoff(DType::i32) == 0);
  CHECK(unit_roundoff(DType::e8m0) == 0);
}
