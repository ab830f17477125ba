#include "toml/toml.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "generator/generator.h"
#include "test/unit/generator/sample.h"

using namespace kbench;
using namespace kbench::generator;
using Catch::Matchers::Contains;
using sample::kHeader;
using sample::kToml;
using sample::with;

namespace {

std::string faults(const std::string& toml, const std::string& header = kHeader) {
  try {
    parse("family/twice", "catalog/family/twice.toml", toml, header);
    return "";
  } catch (const BadDefinition& bad) {
    return bad.what();
  }
}

int lines(const std::string& text) {
  return text.empty() ? 0 : 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("a definition is read whole") {
  const Definition d = parse("family/twice", "f.toml", kToml, kHeader);
  CHECK(d.id() == "family/twice");
  CHECK(d.problem.metric == Metric::gbytes);
  CHECK(d.problem.gpus == 1);
  CHECK(d.problem.argument_dims() == std::vector<std::string>{"N", "K", "NK"});
  CHECK(d.problem.test.at(0).dims.at("NK") == 77);
  CHECK(d.problem.odd.at("N") == std::pair<std::int64_t, std::int64_t>{1, 9});
  CHECK(d.problem.tensors.at(1).tolerance.max == 4);
  CHECK(d.problem.tensors.at(1).tolerance.rms == 1.7);
  CHECK(d.problem.languages == std::vector<std::string>{"cuda", "cpp", "python"});
  CHECK(d.problem.hash.size() == 64);
  CHECK(d.public_header.find("reference") != std::string::npos);
  CHECK(d.public_header.find("independent") == std::string::npos);
  CHECK(d.public_header.find("private") == std::string::npos);
  CHECK(d.header.find("control") != std::string::npos);
}

TEST_CASE("the hash is of the meaning: not of title, source, keywords") {
  const auto hash = [](const std::string& toml, const std::string& header = kHeader) {
    return parse("family/twice", "f.toml", toml, header).problem.hash;
  };
  const std::string same = hash(kToml);
  CHECK(hash(with(kToml, "\"Twice\"", "\"Double\"")) == same);
  CHECK(hash(with(kToml, "\"here\"", "\"there\"")) == same);
  CHECK(hash(with(kToml, "\"elementwise\"", "\"other\"")) == same);
  CHECK(hash(with(kToml, "y[i] = 2 x[i]", "y[i] = 2 * x[i]")) != same);
  CHECK(hash(with(kToml, "normal(0,1)", "normal(0,2)")) != same);
  CHECK(hash(with(kToml, "max = 4\n", "max = 5\n")) != same);
  CHECK(hash(with(kToml, "8*NK", "9*NK")) != same);
  CHECK(hash(kToml, kHeader + "// more\n") != same);
}

TEST_CASE("a fault names file, line, key and reason") {
  const struct {
    const char *from, *to, *fault;
  } cases[] = {
      {"dtype = \"f32\"\nshape = [\"N\", \"K\"]", "dtype = \"bf17\"\nshape = [\"N\", \"K\"]",
       "catalog/family/twice.toml:31: tensors[0].dtype: unknown 'bf17'; one of f64, f32"},
      {"version = \"1\"\n", "", ": version: missing"},
      {"version = \"1\"\n", "version = 1\n", ":2: version: must be a string"},
      {"source = \"here\"", "source = \"here\"\nsauce = \"there\"", ":8: sauce: unknown key; known here: title"},
      {"rule = \"near", "ruler = \"near", "tensors[1].ruler: unknown key"},
      {"GB/s", "GB", ":3: metric: unknown 'GB'; one of TFLOP/s, GB/s"},
      {"role = \"input\"", "role = \"in\"", "tensors[0].role: unknown 'in'; one of input, output, inout"},
      {"gen = \"normal(0,1)\"\n", "", "tensors[0].gen: missing"},
      {"rule = \"near(scale=tensor)\"", "rule = \"near(scale=tensor)\"\ngen = \"zeros\"",
       "tensors[1].gen: an output has none"},
      {"shape = [\"NK\"]", "shape = [\"N*Q\"]", "tensors[1].shape"},
      {"shape = [\"NK\"]", "shape = [\"N*\"]", "tensors[1].shape"},
      {"shape = [\"NK\"]", "shape = [\"N/2\"]", "tensors[1].shape"},
      {"shape = [\"NK\"]", "shape = [7]", "tensors[1].shape[0]: must be a string"},
      {"\"8*NK\"", "\"8*NK*\"", "work.bytes"},
      {"\"8*NK\"", "\"-8*NK\"", "work.bytes"},
      {"[\"NK = N*K\"]", "[\"NK = N*X\"]", "unknown name 'X'"},
      {"[\"NK = N*K\"]", "[\"NK N*K\"]", "must read \"NAME = expression\""},
      {"{ N = 1000, K = 2000 }", "{ N = 9000000000000000000, K = 2000 }", "dims.graded[0]"},
      {"{ N = 1000, K = 2000 }", "{ N = 1000000000, K = 2000000000 }", "bytes"},
      {"{ N = 1000, K = 2000 }", "{ N = 0, K = 2000 }", "dims.graded[0].N: must be at least 1"},
      {"{ N = 1000, K = 2000 }", "{ N = 1000 }", "dims.graded[0].K: missing"},
      {"{ N = 1000, K = 2000 }", "{ N = 1000, K = 2000, J = 1 }", "dims.graded[0].J: is not in dims.names"},
      {"{ N = 5, K = 3 }", "{ N = 5.5, K = 3 }", "dims.tiny.N: must be an integer"},
      {"[1, 9]", "[9, 1]", "dims.odd.N: must be a range"},
      {"[1, 9]", "[1]", "dims.odd.N: must be [first, last]"},
      {"normal(0,1)", "normal(0,", "tensors[0].gen"},
      {"normal(0,1)", "gauss(0,1)", "tensors[0].gen"},
      {"near(scale=tensor)", "close", "tensors[1].rule"},
      {"near(scale=tensor)", "near(scale=column)", "tensors[1].rule"},
      {"near(scale=tensor)", "abs(0.1)", "tensors[1].rule: its number is measured"},
      {"type = \"f64\"", "type = \"f16\"", "scalars[0].type: unknown 'f16'"},
      {"value = 2\n", "value = inf\n", "scalars[0].value: must be a finite number"},
      {"type = \"f64\"\nvalue = 2\n", "type = \"i64\"\nvalue = 2.5\n", "scalars[0].value: an i64 must be whole"},
      {"type = \"f64\"\nvalue = 2\n", "type = \"f32\"\nvalue = 1e39\n", "scalars[0].value: is beyond f32"},
      {"bound = \"memory\"", "bound = \"fp32\"", "work.bound: unknown 'fp32'; one of memory, f64, f32"},
      {"bound = \"memory\"", "bound = \"bf16\"", "work.bound: a task in GB/s is bound by memory"},
      {"bound = \"memory\"", "bound = \"memory\"\npeak_factor = -1", "work.peak_factor: must not be negative"},
      {"bound = \"memory\"\n", "bound = \"memory\"\n[rules]\n", "rules.kernels_max: missing"},
      {"bound = \"memory\"\n", "bound = \"memory\"\n[rules]\nkernels_max = 0\n",
       ":23: rules.kernels_max: must be 1 to 1000"},
      {"bound = \"memory\"\n", "bound = \"memory\"\n[rules]\nkernels_max = 1001\n",
       "rules.kernels_max: must be 1 to 1000"},
      {"bound = \"memory\"\n", "bound = \"memory\"\n[rules]\nkernels_max = 1.5\n",
       "rules.kernels_max: must be an integer"},
      {"bound = \"memory\"\n", "bound = \"memory\"\n[rules]\nkernels_max = 1\nlaunches = 1\n",
       "rules.launches: unknown key"},
      {"[dims]\n", "devices = [\"cpu\"]\nrules = { kernels_max = 1 }\n[dims]\n",
       "rules.kernels_max: is of the cuda device, which the task lacks"},
      {"[dims]\n", "rules = 1\n[dims]\n", "rules: must be a table"},
      {"normal(0,1)", "offsets(K-1, 100, cuts)", "cuts need 1 <= n <= total"},
      {"name = \"factor\"", "name = \"x\"", "occurs twice"},
      {"metric = \"GB/s\"\n", "metric = \"GB/s\"\ngpus = 2\n",
       "tensors[0].placement: is missing: the task has 2 GPUs; one of shard, replicated"},
      {"metric = \"GB/s\"\n", "metric = \"GB/s\"\ngpus = 9\n", "gpus: must be 1 to 8"},
      {"role = \"input\"\n", "role = \"input\"\nplacement = \"shard\"\n",
       "tensors[0].placement: is of tasks on several GPUs: gpus is 1"},
      {"role = \"input\"\n", "role = \"input\"\nplacement = \"both\"\n",
       "tensors[0].placement: unknown 'both'; one of shard, replicated"},
      {"[precision.y]", "[precision.x]", "precision.x: no output of that name has a tolerance"},
      {"rms = 1.7\n", "", "precision.y.rms: missing"},
      {"[dims]\n", "[dims\n", ": (syntax): "},
  };
  for (const auto& one : cases) {
    INFO(one.to);
    CHECK_THAT(faults(with(kToml, one.from, one.to)), Contains(one.fault) && Contains("catalog/family/twice.toml"));
  }
}

TEST_CASE("a rule is part of the meaning, and a task without one means what it did") {
  const Definition plain = parse("family/twice", "f.toml", kToml, kHeader);
  CHECK(plain.problem.kernels_max == 0);
  CHECK(to_json(plain.problem).find("rules") == std::string::npos);
  for (const int most : {1, kKernelsMax}) {
    const std::string rules = "bound = \"memory\"\n[rules]\nkernels_max = " + std::to_string(most) + "\n";
    const Definition ruled = parse("family/twice", "f.toml", with(kToml, "bound = \"memory\"\n", rules), kHeader);
    CHECK(ruled.problem.kernels_max == most);
    CHECK(ruled.problem.hash != plain.problem.hash);
  }
}

TEST_CASE("GPUs and placements are part of the meaning") {
  const Definition two = parse("family/twice", "f.toml", sample::toml_of_two(), sample::kHeaderOfTwo);
  CHECK(two.problem.gpus == 2);
  CHECK(two.problem.tensors.size() == 2);
  CHECK(two.problem.tensors[0].placement == Placement::shard);
  const Definition same = parse("family/twice", "f.toml",
                                with(sample::toml_of_two(), "role = \"input\"\nplacement = \"shard\"",
                                     "role = \"input\"\nplacement = \"replicated\""),
                                sample::kHeaderOfTwo);
  CHECK(same.problem.hash != two.problem.hash);
}

TEST_CASE("a tolerance needs a measurement") {
  const std::string without = kToml.substr(0, kToml.find("[precision]"));
  CHECK_THAT(faults(without), Contains("precision.y: missing") && Contains("must be measured"));
  CHECK(faults(with(without, "near(scale=tensor)", "exact")).empty());
  CHECK_NOTHROW(parse("family/twice", "f.toml", without, kHeader, Tolerances::to_be_measured));
}

TEST_CASE("all faults are reported at once") {
  std::string toml = with(kToml, "dtype = \"f32\"\nshape = [\"N\", \"K\"]", "dtype = \"bf17\"\nshape = [\"N\", \"K\"]");
  toml = with(toml, "version = \"1\"\n", "");
  toml = with(toml, "GB/s", "GB");
  const std::string found = faults(toml, "");
  CHECK(lines(found) == 5);  // the three above, no marker, no reference
  CHECK_THAT(found, Contains("bf17") && Contains("version") && Contains("metric") && Contains("(header)"));
  toml = with(with(kToml, "shape = [\"NK\"]", "shape = [\"Q\"]"), "\"8*NK\"", "\"P\"");
  CHECK(lines(faults(toml)) >= 2);
}

TEST_CASE("the header must have its three functions, the private ones behind the marker") {
  CHECK_THAT(faults(kToml, with(kHeader, "// kbench: private from here\n", "")), Contains("private from here"));
  CHECK_THAT(faults(kToml, with(kHeader, "inline void control", "inline void kontrol")), Contains("void control"));
  CHECK_THAT(faults(kToml, with(kHeader, "inline void reference", "void reference")), Contains("void reference"));
}

TEST_CASE("tasks are found by name") {
  CHECK(find(".", {"segmented-exclusive-scan"}) == std::vector<std::string>{"raw-cuda/segmented-exclusive-scan"});
  CHECK(find(".", {"raw-cuda/segmented-exclusive-scan"}).size() == 1);
  CHECK_THROWS_WITH(find(".", {"no-such-task"}), Contains("no-such-task: no such task"));
  CHECK_THROWS_WITH(find("/nonexistent", {}), Contains("no such folder"));
  CHECK(find(".", {}).size() >= 2);
}

TEST_CASE("the bounds that work may have are the rates of gpus.toml, and memory") {
  const toml::table table = toml::parse_file("catalog/gpus.toml");
  for (const toml::node& family : *table["gpu"].as_array())
    for (const auto& [rate, value] : *family.as_table()->get("rates")->as_table()) {
      std::string toml = with(kToml, "bound = \"memory\"", "bound = \"" + std::string(rate.str()) + "\"");
      INFO(rate.str());
      CHECK(faults(with(toml, "GB/s", "TFLOP/s")).empty());
    }
}

TEST_CASE("generators are tried at every size that a grading may ask for") {
  const std::string subset = with(kToml, "normal(0,1)", "subset(5, N, sorted)@(i1) along i0%5");
  CHECK_THAT(faults(subset), Contains("tensors[0].gen: ") && Contains("(the least odd sizes)"));
}
