// Whether a task's rules see through what must not pass, let honest kernels pass, and its sizes are worth measuring.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "generator/bench.h"
#include "generator/cheats.h"
#include "generator/render.h"
#include "verifier/compare/compare.h"

namespace kbench::generator {
namespace {

constexpr double kMargin = 4;          // a cheat's error over an honest kernel's, at least
constexpr double kHonestLeast = 1e-3;  // an honest error below this counts as this, in tolerances
constexpr double kRooflineFirstUs = 500, kRooflineLastUs = 1000;  // of the first and of the last graded size
constexpr double kReferenceMsMax = 500;
constexpr std::int64_t kSetBytesMax = 10'000'000'000;  // all tensors of one graded size
constexpr std::int64_t kTruncatedShare = 64;           // a reduction loses one part in so many
constexpr double kQuickSeconds = 0.25;                 // test sizes whose reference takes longer are left to a GPU
constexpr std::uint64_t kSeed = 31, kOtherSeed = 32;
constexpr char kModel[] = "NVIDIA H200";

// How far off one check was, over all outputs and sizes.
struct Finding {
  bool tried = false, right = true;
  double error = std::numeric_limits<double>::infinity();  // cheats: the smallest; honest: the largest
  std::string where;
};

class Linter {
 public:
  Linter(const std::string& root, const Definition& definition, verify::Device& device, bool cuda)
      : root_(root), definition_(definition), problem_(spread(definition.problem)), device_(device), cuda_(cuda) {}

  std::vector<LintRow> run() {
    check_sizes();
    const Author author(root_, definition_, cuda_);
    // Other orders of the same sums: another algorithm, sums that the compiler may reorder, products that it may not
    // join with them.
    const Author reordered(root_, definition_, cuda_,
                           cuda_
                               ? std::vector<std::string>{"-O3", "--ftz=true", "--prec-div=false", "--prec-sqrt=false"}
                               : std::vector<std::string>{"-O3", "-march=native", "-fassociative-math",
                                                          "-fno-signed-zeros", "-fno-trapping-math"});
    const Author unfused(
        root_, definition_, cuda_,
        cuda_ ? std::vector<std::string>{"-O3", "--fmad=false"} : std::vector<std::string>{"-O1", "-ffp-contract=off"});
    honest_ = {{"independent", author.function("kbench_independent")},
               {"reordered", reordered.function("kbench_reference")},
               {"unfused", unfused.function("kbench_reference")}};
    std::vector<Shape> shapes = problem_.tiny;
    shapes.insert(shapes.end(), problem_.test.begin(), problem_.test.end());
    if (cuda_) shapes.insert(shapes.end(), definition_.precision_shapes.begin(), definition_.precision_shapes.end());
    for (const Shape& shape : shapes) check_shape(author, shape, &shape == shapes.data());
    conclude();
    return rows_;
  }
  double margin() const { return margin_; }

 private:
  struct Honest {
    const char* name;
    verify::Device::Reference* function;
  };
  struct Scene {  // one size, one seed
    Bench& bench;
    const Shape& shape;
    std::vector<Content> inputs;  // by tensor, as they were filled; outputs: empty
    std::vector<bool> operand;    // by tensor: what sums may run over. Not indices, nor tables that are always the same
    std::vector<Content> right;   // by tensor; inputs: empty
  };

  void row(const std::string& check, bool good, const std::string& detail) {
    const auto exception = definition_.exceptions.find(check);
    const bool excepted = !good && exception != definition_.exceptions.end();
    rows_.push_back({definition_.id(), check,
                     good       ? "ok"
                     : excepted ? "excepted"
                                : "FAILED",
                     detail + (excepted ? "; " + exception->second : "")});
  }

  void check_sizes() {
    if (std::find(problem_.devices.begin(), problem_.devices.end(), "cuda") != problem_.devices.end()) {
      const std::vector<double> us = rooflines(root_, problem_).at(kModel);
      row("roofline", us.front() >= kRooflineFirstUs && us.back() >= kRooflineLastUs,
          number_text(us.front()) + " us first, " + number_text(us.back()) + " us last on " + kModel);
    }
    std::int64_t largest = 0;
    for (const Shape& shape : problem_.graded) {
      std::int64_t bytes = 0;
      for (const Tensor& tensor : definition_.problem.tensors) bytes += problem_.bytes(tensor, shape.dims);
      largest = std::max(largest, bytes);
    }
    row("memory", largest <= kSetBytesMax,
        number_text(std::round(static_cast<double>(largest) / 1e6)) + " MB a set" +
            (problem_.gpus > 1 ? " and GPU" : ""));
    const auto& times = definition_.precision ? definition_.precision->reference_ms : std::vector<double>{};
    if (times.empty()) return;
    const double slowest = *std::max_element(times.begin(), times.end());
    row("reference_time", slowest <= kReferenceMsMax, number_text(slowest) + " ms at the slowest graded size");
  }

  Content content_of(const Dims& dims, const Tensor& tensor, verify::Region region) {
    Content content{tensor.dtype, {}, Bytes(region.bytes)};
    for (const std::string& extent : tensor.shape) content.shape.push_back(evaluate(extent, dims));
    content.bytes.resize(static_cast<std::size_t>(problem_.bytes(tensor, dims)));
    device_.read(content.bytes.data(), {region.data, content.bytes.size(), region.gpu});
    return content;
  }

  std::vector<Content> inputs_of(const Bench& bench) {
    std::vector<Content> contents(problem_.tensors.size());
    for (std::size_t i = 0; i < contents.size(); ++i)
      if (problem_.tensors[i].role != Role::output)
        contents[i] = content_of(bench.dims(), problem_.tensors[i], bench.tensor(i));
    return contents;
  }

  std::vector<Content> outputs_of(const Bench& bench, const Bench::Outputs& outputs) {
    std::vector<Content> contents(problem_.tensors.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) contents[i] = content_of(bench.dims(), problem_.tensors[i], outputs[i]->region());
    return contents;
  }

  // How far `got` is off, in tolerances; infinite where there is no measure and it fails, 0 where it passes.
  struct Verdict {
    bool passes;
    double error;
  };
  Verdict judge(const Scene& scene, std::size_t i, const Content& got) {
    const Tensor& tensor = problem_.tensors[i];
    const auto there = device_.allocate(got.bytes.size(), tensor.gpu),
               right = device_.allocate(got.bytes.size(), tensor.gpu);
    device_.write({there->region().data, got.bytes.size(), tensor.gpu}, got.bytes.data());
    device_.write({right->region().data, got.bytes.size(), tensor.gpu}, scene.right[i].bytes.data());
    const compare::Outcome outcome = compare::parse(tensor)->judge(device_, tensor, scene.bench.dims(), there->region(),
                                                                   right->region(), scene.bench.initial(i));
    if (tensor.tolerance.max > 0 && !tensor.rule.starts_with("rows"))
      return {outcome.equal, std::max(outcome.max_error, outcome.rms_error)};
    return {outcome.equal, outcome.equal ? 0 : std::numeric_limits<double>::infinity()};
  }

  bool measures(std::size_t i) const {
    return problem_.tensors[i].tolerance.max > 0 && !problem_.tensors[i].rule.starts_with("rows");
  }

  void note_cheat(const std::string& check, bool seen_through, double error, double ratio, const std::string& where) {
    Finding& finding = findings_[check];
    finding.tried = true;
    if (!seen_through || (finding.right && error < finding.error) || finding.where.empty()) {
      finding.error = error;
      finding.where = where;
    }
    finding.right = finding.right && seen_through;
    if (ratio < margin_) margin_ = ratio, margin_where_ = check + ": " + where;
  }

  // A wrong output, alone.
  void cheat(const Scene& scene, const std::string& check, std::size_t i, const std::optional<Content>& made,
             bool in_margin = true) {
    if (!made || made->bytes == scene.right[i].bytes) return;
    const Verdict verdict = judge(scene, i, *made);
    const double ratio = in_margin && measures(i) ? verdict.error / std::max(honest_errors_[i], kHonestLeast)
                                                  : std::numeric_limits<double>::infinity();
    note_cheat(check, !verdict.passes, verdict.error, ratio, problem_.tensors[i].label() + ", " + scene.shape.name);
  }

  // Outputs that belong together: it is enough that one is seen through. Nothing where none differs.
  void cheat_all(const Scene& scene, const std::string& check, const std::vector<Content>& made,
                 const std::string& where) {
    bool differs = false, seen_through = false;
    double error = 0, ratio = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (problem_.tensors[i].role == Role::input || made[i].bytes == scene.right[i].bytes) continue;
      differs = true;
      const Verdict verdict = judge(scene, i, made[i]);
      seen_through = seen_through || !verdict.passes;
      error = std::max(error, verdict.error);
      ratio = std::max(ratio, verdict.error / std::max(honest_errors_[i], kHonestLeast));
    }
    if (differs) note_cheat(check, seen_through, error, ratio, where + ", " + scene.shape.name);
  }

  std::vector<Content> run_with(const Scene& scene, verify::Device::Reference* function,
                                const std::function<std::optional<Content>(std::size_t)>& changed) {
    std::vector<std::size_t> touched;
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i) {
      if (problem_.tensors[i].role == Role::output) continue;
      if (const auto content = changed(i)) scene.bench.put(i, content->bytes), touched.push_back(i);
    }
    const std::vector<Content> outputs = outputs_of(scene.bench, scene.bench.run(function));
    for (const std::size_t i : touched) scene.bench.put(i, scene.inputs[i].bytes);
    return outputs;
  }

  void check_shape(const Author& author, const Shape& shape, bool always) {
    verify::Device::Reference* reference = author.function("kbench_reference");
    Bench bench(device_, problem_, shape);
    bench.fill(kOtherSeed);
    const auto start = std::chrono::steady_clock::now();
    const Bench::Outputs other = bench.run(reference);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!always && seconds > kQuickSeconds) return;
    const std::vector<Content> stale = outputs_of(bench, other);
    Scene scene{bench, shape, inputs_of(bench), {}, {}};
    bench.fill(kSeed);
    std::vector<Content> inputs = inputs_of(bench);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      scene.operand.push_back(is_operand(problem_.tensors[i].dtype) && inputs[i].bytes != scene.inputs[i].bytes);
    scene.inputs = std::move(inputs);
    scene.right = outputs_of(bench, bench.run(reference));
    check_honest(scene);
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i)
      if (problem_.tensors[i].role != Role::input) check_output(scene, i, stale[i]);
    cheat_all(scene, "control", outputs_of(bench, bench.run(author.function("kbench_control"))), "control");
    const auto lower = [&](std::size_t i) { return lowered(scene.inputs[i]); };
    cheat_all(scene, "lower_precision", run_with(scene, reference, lower), "inputs");
    check_reductions(scene, reference);
  }

  void check_honest(const Scene& scene) {
    honest_errors_.resize(problem_.tensors.size(), 0);
    for (const Honest& honest : honest_) {
      const std::vector<Content> outputs = outputs_of(scene.bench, scene.bench.run(honest.function));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (problem_.tensors[i].role == Role::input) continue;
        const Verdict verdict = judge(scene, i, outputs[i]);
        Finding& finding = findings_[std::string("honest_") + honest.name];
        if (!finding.tried || verdict.error > finding.error) {
          finding.error = verdict.error;
          finding.where = problem_.tensors[i].label() + ", " + scene.shape.name;
        }
        finding.tried = true;
        finding.right = finding.right && verdict.passes;
        honest_errors_[i] = std::max(honest_errors_[i], measures(i) ? verdict.error : 0);
      }
    }
  }

  // Rows that the rule may leave out.
  std::int64_t rows_left_out(const Tensor& tensor, const Content& content) const {
    const auto at = tensor.rule.find("share>=");
    if (at == std::string::npos) return 0;
    const double share = std::strtod(tensor.rule.c_str() + at + 7, nullptr);
    const std::int64_t rows = content.shape.size() <= 1 ? content.count() : content.count() / content.columns();
    return static_cast<std::int64_t>(std::floor((1 - share) * static_cast<double>(rows) + 1e-9));
  }

  void check_output(const Scene& scene, std::size_t i, const Content& stale) {
    const Tensor& tensor = problem_.tensors[i];
    const Content& right = scene.right[i];
    if (right.count() == 0) return;
    const std::int64_t left_out = rows_left_out(tensor, right);
    cheat(scene, "zeros", i, zeros(right));
    cheat(scene, "constant", i, constant(right));
    cheat(scene, "rank_one", i, rank_one(right));
    cheat(scene, "stale", i, stale);
    for (std::size_t k = 0; k < problem_.tensors.size(); ++k)
      if (problem_.tensors[k].role != Role::output) cheat(scene, "input_copy", i, copied(right, scene.inputs[k]));
    const Content blank = tensor.role == Role::inout ? scene.inputs[i] : zeros(right);
    cheat(scene, "missing_tile", i, without_tile(right, blank, left_out + 1), false);
    cheat(scene, "last_column", i, without_last_column(right, blank), false);
    for (const std::int64_t at : {std::int64_t{0}, right.count() / 2, right.count() - 1})
      cheat(scene, "nan", i, with_nan(right, at), false);
    if (left_out > 0) return;  // the rule lets single rows go
    cheat(scene, "last_row", i, without_last_row(right, blank), false);
    for (const std::int64_t at : {std::int64_t{0}, right.count() / 2, right.count() - 1}) {
      if (!measures(i)) {
        cheat(scene, "wrong_element", i, with_wrong_bits(right, at), false);
        continue;
      }
      // Ten tolerances off. How the error grows is found by two tries: evenly, beyond what a rule forgives.
      const auto off_by = [&](double amount) {
        const Content far = with_offset(right, at, amount);
        return std::pair{far.get(at) - right.get(at), judge(scene, i, far).error};
      };
      const double trial = std::max(1.0, std::fabs(right.get(at))) * (right.get(at) > 0 ? -1 : 1);
      const auto [near, error] = off_by(trial);
      const auto [far, larger_error] = off_by(2 * trial);
      if (!std::isfinite(larger_error) || larger_error <= error) continue;
      const double tolerance = (far - near) / (larger_error - error), forgiven = near - error * tolerance;
      cheat(scene, "wrong_element", i, with_offset(right, at, forgiven + 10 * tolerance), false);
    }
  }

  // For every extent that operands have: its last and its middle part zeroed in all of them, and the outputs of that
  // part put right. What then still differs was summed over that axis.
  void check_reductions(const Scene& scene, verify::Device::Reference* reference) {
    std::map<std::string, std::int64_t> extents;
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i)
      for (std::size_t axis = 0; axis < scene.inputs[i].shape.size(); ++axis)
        if (scene.operand[i]) extents[problem_.tensors[i].shape[axis]] = scene.inputs[i].shape[axis];
    for (const auto& [name, extent] : extents) {
      const std::int64_t part = (extent + kTruncatedShare - 1) / kTruncatedShare;
      if (extent < 2) continue;
      for (const std::int64_t begin : {extent - part, (extent - part) / 2}) {
        std::vector<Content> outputs = run_with(scene, reference, [&](std::size_t i) -> std::optional<Content> {
          if (!scene.operand[i]) return std::nullopt;
          std::optional<Content> changed;
          for_axes(problem_.tensors[i], name, [&](std::size_t axis) {
            changed = without_slice(changed ? *changed : scene.inputs[i], axis, begin, begin + part);
          });
          return changed;
        });
        for (std::size_t o = 0; o < outputs.size(); ++o)
          if (problem_.tensors[o].role != Role::input)
            for_axes(problem_.tensors[o], name,
                     [&](std::size_t axis) { restore_slice(outputs[o], scene.right[o], axis, begin, begin + part); });
        cheat_all(scene, "truncated", outputs, "along " + name);
      }
    }
  }

  template <class Use>
  static void for_axes(const Tensor& tensor, const std::string& extent, Use use) {
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
      if (tensor.shape[axis] == extent) use(axis);
  }

  void conclude() {
    for (const auto& [check, finding] : findings_) {
      if (!finding.tried) continue;
      const bool honest = check.starts_with("honest_");
      char text[64];
      std::snprintf(text, sizeof text, "%s %.3g tolerances", honest ? "at most" : "at least", finding.error);
      row(check, finding.right,
          (std::isfinite(finding.error) ? std::string(text) : "nothing like it") + " (" + finding.where + ")");
    }
    char text[64];
    std::snprintf(text, sizeof text, "%.3g", margin_);
    row("margin", margin_ >= kMargin, text + (margin_where_.empty() ? "" : " (" + margin_where_ + ")"));
  }

  const std::string& root_;
  const Definition& definition_;
  const Problem problem_;  // spread over its GPUs
  verify::Device& device_;
  bool cuda_;
  std::vector<Honest> honest_;
  std::vector<double> honest_errors_;  // by tensor
  std::map<std::string, Finding> findings_;
  std::vector<LintRow> rows_;
  double margin_ = std::numeric_limits<double>::infinity();
  std::string margin_where_;
};

// The record behind the precision section, which `precision` rewrites and so takes away.
void record(const std::string& root, const Definition& definition, const std::string& device, double margin) {
  if (definition.lint && definition.lint->hash == definition.problem.hash &&
      definition.lint->conditions.find(device) != std::string::npos)
    return;
  const std::filesystem::path path = std::filesystem::path(root) / ("catalog/" + definition.id() + ".toml");
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (const auto at = text.find("\n[lint]"); at != std::string::npos) text.resize(at);
  while (text.ends_with("\n")) text.pop_back();
  const std::time_t now = std::time(nullptr);
  char date[16], rounded[32];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::snprintf(rounded, sizeof rounded, "%.3g", std::min(margin, 1e6));
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text << "\n\n[lint]\nhash = \"" << definition.problem.hash << "\"\nconditions = \"" << date << ", " << device
      << "\"\nmargin = " << rounded << "\n";
  out.close();
  if (!out) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace

std::vector<LintRow> lint(const std::string& root, const std::string& id, bool cuda) {
  const Definition definition = load(root, id);
  const std::unique_ptr<verify::Device> device =
      cuda ? verify::open_cuda_device(definition.problem.gpus) : verify::open_cpu_device();
  Linter linter(root, definition, *device, cuda);
  const std::vector<LintRow> rows = linter.run();
  if (std::none_of(rows.begin(), rows.end(), [](const LintRow& row) { return row.verdict == "FAILED"; }))
    record(root, definition, cuda ? device->facts().name : "cpu", linter.margin());
  return rows;
}

}  // namespace kbench::generator
