// The linter: a sound task passes, and each way to be unsound is found.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "generator/bench.h"
#include "generator/cheats.h"
#include "test/unit/generator/sample.h"

using namespace kbench;
using namespace kbench::generator;
using Catch::Matchers::Contains;
using sample::kHeader;
using sample::kToml;
using sample::with;
namespace fs = std::filesystem;

namespace {

// A repository with the sample as its only task.
class Root {
 public:
  Root(const std::string& toml, const std::string& header) {
    fs::create_directories(scratch_.path() / "catalog" / "family");
    fs::create_directory_symlink(fs::current_path() / "sdk", scratch_.path() / "sdk");
    fs::copy_file("catalog/gpus.toml", scratch_.path() / "catalog" / "gpus.toml");
    std::ofstream(toml_path()) << toml;
    std::ofstream(scratch_.path() / "catalog" / "family" / "twice.h") << header;
  }
  std::string path() const { return scratch_.path().string(); }
  fs::path toml_path() const { return scratch_.path() / "catalog" / "family" / "twice.toml"; }

 private:
  ScratchFolder scratch_;
};

std::map<std::string, LintRow> linted(const std::string& toml, const std::string& header = kHeader) {
  const Root root(toml, header);
  std::map<std::string, LintRow> rows;
  for (const LintRow& row : lint(root.path(), "family/twice", false)) rows[row.check] = row;
  return rows;
}

// 4.8 GB a set and 1 ms of roofline.
const std::string kLarge =
    with(kToml, "{ N = 1000, K = 2000 }, { N = 2000, K = 2000 }", "{ N = 200000, K = 2000 }, { N = 320000, K = 2000 }");

Content floats(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  Content content{DType::f32, shape, Bytes(4 * values.size())};
  for (std::size_t i = 0; i < values.size(); ++i)
    content.set(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
  return content;
}

}  // namespace

TEST_CASE("a sound task passes, and that is recorded once") {
  const Root root(kLarge, kHeader);
  for (const LintRow& row : lint(root.path(), "family/twice", false)) {
    INFO(row.check << ": " << row.detail);
    CHECK(row.verdict == "ok");
  }
  const Definition definition = load(root.path(), "family/twice");
  REQUIRE(definition.lint);
  CHECK(definition.lint->hash == definition.problem.hash);
  CHECK(definition.lint->margin >= 4);
  CHECK_THAT(definition.lint->conditions, Contains("cpu"));
  const auto written = fs::last_write_time(root.toml_path());
  lint(root.path(), "family/twice", false);
  CHECK(fs::last_write_time(root.toml_path()) == written);
  CHECK(status_of(root.path(), {{"p:1", "family", "twice", "", ""}}).at(0).linted == 1);
  measure_precision(root.path(), "family/twice", false);  // another measurement: to be linted again
  CHECK_FALSE(load(root.path(), "family/twice").lint);
}

TEST_CASE("a task without a tolerance counts as measured only when precision was run") {
  const std::string exact = with(kLarge, "near(scale=tensor)", "exact");
  const Root root(exact.substr(0, exact.find("[precision]")), kHeader);
  const auto status = [&] { return status_of(root.path(), {{"p:1", "family", "twice", "", ""}}).at(0); };
  lint(root.path(), "family/twice", false);
  CHECK(status().written == 1);
  CHECK(status().linted == 1);
  CHECK(status().measured == 0);
  measure_precision(root.path(), "family/twice", false);
  CHECK(status().measured == 1);
  CHECK(status().linted == 0);  // to be linted again, as after any measurement
  const Definition definition = load(root.path(), "family/twice");
  REQUIRE(definition.precision);
  CHECK(definition.precision->tensors.empty());
  CHECK_THAT(definition.precision->conditions, Contains("cpu"));
}

TEST_CASE("precision takes no implementation that leaves its output to another, or differs as nothing would") {
  const auto refused = [](const std::string& header) {
    const Root root(kLarge, header);
    try {
      measure_precision(root.path(), "family/twice", false);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(kHeader).empty());
  CHECK_THAT(refused(with(kHeader, "a.y[i] = a.x[i] + a.x[i]", "(void)i")), Contains("y: "));  // reference's left there
  CHECK_THAT(refused(with(kHeader, "a.y[i] = a.x[i] + a.x[i]", "a.y[i] = -a.x[i]")),
             Contains("y: a tolerance of four floors would let zeros pass"));
}

TEST_CASE("a header's function that crashes is named") {
  const Root root(kLarge, with(kHeader, "a.y[i] = a.x[i] + a.x[i]", "a.y[i + (1ll << 40)] = a.x[i]"));
  int said[2];
  REQUIRE(pipe(said) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(said[1], STDERR_FILENO);
    tell_crashes();
    measure_precision(root.path(), "family/twice", false);
    _exit(0);
  }
  close(said[1]);
  std::string text;
  char some[256];
  for (ssize_t n; (n = read(said[0], some, sizeof some)) > 0;) text.append(some, static_cast<std::size_t>(n));
  close(said[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK_THAT(text, Contains("crashed (memory) in a function of catalog/family/twice.h\n"));
}

TEST_CASE("a tolerance that lets anything pass is found") {
  const auto rows = linted(with(with(kLarge, "max = 4\n", "max = 4e9\n"), "rms = 1.7\n", "rms = 4e9\n"));
  for (const char* check :
       {"zeros", "constant", "stale", "missing_tile", "last_column", "lower_precision", "control"}) {
    INFO(check);
    CHECK(rows.at(check).verdict == "FAILED");
  }
  CHECK(rows.at("nan").verdict == "ok");
}

TEST_CASE("a tolerance that honest kernels break is found") {
  const auto rows = linted(kLarge, with(kHeader, "a.x[i] + a.x[i]", "1.0001f * a.x[i] + a.x[i]"));
  CHECK(rows.at("honest_independent").verdict == "FAILED");
  CHECK(rows.at("honest_reordered").verdict == "ok");
  CHECK(rows.at("honest_unfused").verdict == "ok");
}

TEST_CASE("sizes that are not worth measuring are found, or excepted with their reason") {
  CHECK(linted(kToml).at("roofline").verdict == "FAILED");
  const auto rows = linted(with(kToml, "[precision]", "[exceptions]\nroofline = \"it is a sample\"\n\n[precision]"));
  CHECK(rows.at("roofline").verdict == "excepted");
  CHECK_THAT(rows.at("roofline").detail, Contains("it is a sample"));
  CHECK(linted(with(kToml, "{ N = 2000, K = 2000 }]", "{ N = 2000000, K = 2000 }]")).at("memory").verdict == "FAILED");
  CHECK(linted(with(kLarge, "\"by hand\"\n", "\"by hand\"\nreference_ms = [10, 501]\n")).at("reference_time").verdict ==
        "FAILED");
}

TEST_CASE("a reduction that ends early is found where the rule is too coarse for it") {
  std::string toml = with(kLarge, "shape = [\"NK\"]", "shape = [\"N\"]");
  toml = with(with(toml, "near(scale=tensor)", "abs"), "rms = 1.7\n", "rms = 0\n");
  toml = with(with(toml, "normal(0,1)", "uniform(0.9,1.1)"), "{ N = 7, K = 11 }", "{ N = 7, K = 640 }");
  const std::string row_sums = R"__(#pragma once
#include "kbench/parallel.h"
#include "task.h"
KB_HD float sum(const float* x, long long n) {
  float s = 0;
  for (long long i = 0; i < n; ++i) s += x[i];
  return s;
}
inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { a.y[i] = sum(a.x + i * a.K, a.K); });
}
// kbench: private from here
inline void independent(const kbench_args& a, kbench_exec& exec) { reference(a, exec); }
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.N, KB_LAMBDA(long long i) { a.y[i] = 0; });
}
)__";
  CHECK(linted(with(toml, "max = 4\n", "max = 12\n"), row_sums).at("truncated").verdict == "FAILED");
  const auto sound = linted(with(toml, "max = 4\n", "max = 0.02\n"), row_sums);
  CHECK(sound.at("truncated").verdict == "ok");
  CHECK(sound.at("lower_precision").verdict == "FAILED");  // rounding errors cancel in a sum
}

TEST_CASE("unknown exceptions are faults") {
  CHECK_THROWS_WITH(parse("family/twice", "f.toml",
                          with(kToml, "[precision]", "[exceptions]\nluck = \"none\"\n\n[precision]"), kHeader),
                    Contains("exceptions.luck: unknown key"));
  CHECK_THROWS_WITH(parse("family/twice", "f.toml",
                          with(kToml, "[precision]", "[exceptions]\nmargin = \"\"\n\n[precision]"), kHeader),
                    Contains("exceptions.margin: empty"));
}

TEST_CASE("the best product of a column and a row") {
  const Content right = floats({2, 3}, {1, 2, 3, 2, 4, 6.5});
  const auto made = rank_one(right);
  REQUIRE(made);
  for (std::int64_t i = 0; i < 6; ++i) CHECK(made->get(i) == Approx(right.get(i)).margin(0.3));
  CHECK(made->get(0) * made->get(5) == Approx(made->get(2) * made->get(3)));
  CHECK_FALSE(rank_one(floats({3}, {1, 2, 3})));
}

TEST_CASE("what is left out differs from what is right") {
  const Content right = floats({3, 2}, {1, 2, 3, 4, 0, 0}), blank = zeros(right);
  CHECK_FALSE(without_last_row(right, blank));  // it is zero
  CHECK(without_last_column(right, blank)->get(1) == 0);
  CHECK(without_tile(right, blank, 1));
  CHECK_FALSE(without_tile(blank, blank, 1));
  CHECK_FALSE(with_nan(Content{DType::i32, {1}, Bytes(4)}, 0));
  CHECK(std::isnan(with_nan(Content{DType::e4m3, {1}, Bytes(1)}, 0)->get(0)));
}

TEST_CASE("a slice along any axis") {
  const Content input = floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Content cut = without_slice(input, 1, 1, 3);
  const std::vector<float> expected{1, 2, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(cut.get(static_cast<std::int64_t>(i)) == expected[i]);
  restore_slice(cut, input, 1, 1, 3);
  CHECK(cut.bytes == input.bytes);
}

TEST_CASE("a lower precision keeps the range") {
  const Content input = floats({3}, {1.0009765625f, 3e38f, 1e-40f});
  const auto made = lowered(input);
  REQUIRE(made);
  CHECK(made->get(0) == Approx(1.0009765625).epsilon(1e-3));
  CHECK(made->get(1) == Approx(3e38).epsilon(1e-3));
  CHECK(made->get(2) > 0);
  CHECK_FALSE(lowered(Content{DType::i8, {1}, Bytes(1)}));
}
