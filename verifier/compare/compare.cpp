#include "verifier/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "verifier/compare/passes.h"
#include "verifier/compare/rule_text.h"
#include "verifier/device/device.h"

namespace kbench::compare {
namespace {

using verify::Device;
using verify::PassPlan;
using verify::PassSums;
using verify::Region;

// Rows longer than this are summed by a pass of their own each: one thread a row would take long.
constexpr std::int64_t kSerialRowMax = 65536;

struct Subject {
  Device& device;
  const Tensor& tensor;
  std::vector<std::int64_t> shape;
  std::int64_t count = 1, row = 1;  // stored elements; of the last axis
  Region got, expected, initial;

  std::int64_t rows() const { return row == 0 ? 0 : count / row; }
  PassPlan plan(Pass pass) const {
    PassPlan plan{};
    plan.pass = static_cast<std::uint8_t>(pass);
    plan.dtype = tensor.dtype;
    plan.got = got;
    plan.expected = expected;
    plan.initial = initial;
    plan.count = count;
    plan.row = row;
    return plan;
  }
};

Subject subject_of(Device& device, const Tensor& tensor, const Dims& dims, Region got, Region expected,
                   Region initial) {
  Subject subject{device, tensor, {}, 1, 1, got, expected, initial};
  for (const std::string& extent : tensor.shape) subject.shape.push_back(evaluate(extent, dims));
  for (const std::int64_t extent : subject.shape) subject.count *= extent;
  if (!subject.shape.empty()) subject.row = subject.shape.back();
  const std::uint64_t bytes = static_cast<std::uint64_t>(subject.count) * bytes_of(tensor.dtype);
  if (got.bytes < bytes || expected.bytes < bytes || (initial.data != nullptr && initial.bytes < bytes)) {
    throw std::logic_error("compare: a region is smaller than tensor '" + tensor.name + "'");
  }
  return subject;
}

// --- what a submitter reads ---

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}
std::string times(double value) {
  char text[40];
  if (!std::isfinite(value)) return "beyond any tolerance";
  std::snprintf(text, sizeof text, "%.3g times the tolerance", value);
  return text;
}

std::string place(const Subject& subject, std::int64_t index, std::int64_t values_each) {
  std::string text = "]";
  std::int64_t rest = index;
  for (std::size_t axis = subject.shape.size(); axis-- > 0;) {
    const std::int64_t extent =
        axis + 1 == subject.shape.size() ? subject.shape[axis] * values_each : subject.shape[axis];
    text = std::to_string(rest % extent) + (text == "]" ? "" : ",") + text;
    rest /= extent;
  }
  return "[" + text;
}

// The value at an index of the pass, as text: the number, for packed codes the code.
std::string value_at(const Subject& subject, const PassPlan& plan, Region region, std::int64_t index) {
  const std::int64_t each = values(plan) == 0 ? 1 : std::max<std::int64_t>(1, values(plan) / plan.count);
  const std::uint64_t size = bytes_of(plan.dtype);
  std::byte bytes[8] = {};
  subject.device.read(bytes, {region.data + static_cast<std::uint64_t>(index / each) * size, size});
  if (each > 1) {
    const int bits = static_cast<int>(8 * size) / static_cast<int>(each);
    const std::uint64_t code = stored(plan.dtype, bytes, 0) >> (bits * (index % each)) & ((1u << bits) - 1);
    if (plan.dtype == DType::e2m1x2)
      return number(static_cast<double>(kb::decode_e2m1(static_cast<std::uint32_t>(code))));
    return "code " + std::to_string(code);
  }
  if (plan.dtype == DType::u64) return std::to_string(stored(plan.dtype, bytes, 0));
  if (plan.dtype == DType::i64) return std::to_string(static_cast<std::int64_t>(stored(plan.dtype, bytes, 0)));
  return number(inputs::load(plan.dtype, bytes, 0));
}

std::string first_wrong(const Subject& subject, const PassPlan& plan, const PassSums& sums) {
  const std::int64_t each = plan.count == 0 ? 1 : values(plan) / plan.count;
  const std::string got = value_at(subject, plan, plan.got, sums.first),
                    expected = value_at(subject, plan, plan.expected, sums.first);
  std::string text = std::to_string(sums.wrong) + " of " + std::to_string(values(plan)) +
                     " elements differ; first at " + place(subject, sums.first, each) + ": got " + got + ", expected " +
                     expected;
  if (got == expected) text += " (the bits differ)";
  if (sums.nonfinite > 0)
    text += "; " + std::to_string(sums.nonfinite) + " are NaN or infinite where the reference is not";
  return text;
}

Outcome outcome_of(const PassSums& sums) {
  Outcome outcome;
  outcome.wrong = sums.wrong;
  outcome.first = sums.first;
  outcome.max_error = sums.max_error;
  return outcome;
}

Outcome settle(Outcome outcome, const std::string& name, const std::string& fault) {
  outcome.equal = fault.empty();
  if (!fault.empty()) outcome.reason = name + ": " + fault;
  return outcome;
}

// --- scales ---

double rms_of(const Subject& subject, Pass pass) {
  if (subject.count == 0) return 0;
  return std::sqrt(subject.device.pass(subject.plan(pass)).sum_expected2 / static_cast<double>(subject.count));
}

void scale_rows(const Subject& subject, Region scales) {
  if (subject.row <= kSerialRowMax) {
    PassPlan plan = subject.plan(Pass::row_scale);
    plan.row_scales = scales;
    subject.device.pass(plan);
    return;
  }
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(subject.row) * bytes_of(subject.tensor.dtype);
  std::vector<float> rms(static_cast<std::size_t>(subject.rows()));
  for (std::size_t i = 0; i < rms.size(); ++i) {
    PassPlan plan = subject.plan(Pass::squares);
    plan.expected = {subject.expected.data + i * row_bytes, row_bytes};
    plan.count = subject.row;
    rms[i] = static_cast<float>(std::sqrt(subject.device.pass(plan).sum_expected2 / static_cast<double>(subject.row)));
  }
  subject.device.write({scales.data, rms.size() * sizeof(float)}, reinterpret_cast<const std::byte*>(rms.data()));
}

// Holds the scales of a plan while it runs.
std::unique_ptr<verify::Buffer> add_scales(const Subject& subject, ScaleKind kind, PassPlan& plan) {
  plan.parameters[kScaleKind] = static_cast<double>(kind);
  if (kind != ScaleKind::row) plan.parameters[kScale] = rms_of(subject, Pass::squares);
  if (kind == ScaleKind::tensor || subject.count == 0) return nullptr;
  const std::int64_t scales = subject.rows() + (kind == ScaleKind::outer ? subject.row : 0);
  auto buffer = subject.device.allocate(static_cast<std::uint64_t>(scales) * sizeof(float), subject.got.gpu);
  plan.row_scales = buffer->region();
  scale_rows(subject, plan.row_scales);
  if (kind == ScaleKind::outer) {
    PassPlan columns = subject.plan(Pass::column_scale);
    columns.row_scales = plan.row_scales;
    subject.device.pass(columns);
  }
  return buffer;
}

// --- rules ---

// Fills in a plan for one rule; `buffer` lives as long as the plan.
PassPlan prepare(const Subject& subject, const RuleText& text, std::unique_ptr<verify::Buffer>& buffer) {
  const double unit = text.precision ? unit_roundoff(*text.precision) : 0;
  switch (text.kind) {
    case RuleKind::near: {
      PassPlan plan = subject.plan(Pass::near);
      buffer = add_scales(subject, text.scale, plan);
      plan.parameters[kUnit] = unit;
      plan.parameters[kMax] = text.max;
      return plan;
    }
    case RuleKind::bounded: {
      PassPlan plan = subject.plan(Pass::bounded);
      plan.parameters[kMax] = text.max;
      plan.parameters[kFloor] = text.floor;
      return plan;
    }
    case RuleKind::delta: {
      PassPlan plan = subject.plan(Pass::delta);
      plan.parameters[kScale] = rms_of(subject, Pass::delta_squares);
      plan.parameters[kUnit] = unit;
      plan.parameters[kMax] = text.max;
      plan.parameters[kFloor] = text.floor;
      plan.parameters[kUlp] = 2 * unit_roundoff(subject.tensor.dtype);
      return plan;
    }
    case RuleKind::codes: {
      PassPlan plan = subject.plan(Pass::codes);
      plan.parameters[kPacking] = static_cast<double>(text.packing);
      return plan;
    }
    default:
      return subject.plan(Pass::exact);
  }
}

class ParsedRule final : public Rule {
 public:
  explicit ParsedRule(const RuleText& text) : text_(text) {}

  Outcome judge(Device& device, const Tensor& tensor, const Dims& dims, const Region& got, const Region& expected,
                const Region& initial) const override {
    const Subject subject = subject_of(device, tensor, dims, got, expected, initial);
    if (text_.kind == RuleKind::delta && initial.data == nullptr && subject.count > 0) {
      throw std::logic_error("compare: tensor '" + tensor.name +
                             "' is judged by its change, but its content before is not at hand");
    }
    if (subject.count == 0) return settle({}, tensor.label(), "");
    RuleText text = text_;
    const bool single = text.share && subject.shape.size() <= 1;  // each element of a list is a row
    if (single) text.scale = ScaleKind::tensor;
    std::unique_ptr<verify::Buffer> buffer;
    PassPlan plan = prepare(subject, text, buffer);
    if (text_.share) {
      plan.parameters[kByRow] = 1;
      if (single) plan.row = 1;
      return judge_rows(subject, plan, device.pass(plan));
    }
    const PassSums sums = device.pass(plan);
    Outcome outcome = outcome_of(sums);
    if (sums.wrong > 0) {
      std::string fault = first_wrong(subject, plan, sums);
      if (text_.kind != RuleKind::exact && text_.kind != RuleKind::codes)
        fault += "; the largest error is " + times(sums.max_error);
      return settle(outcome, tensor.label(), fault);
    }
    if (text_.kind == RuleKind::codes) return judge_flips(subject, plan, sums, outcome);
    return judge_rms(subject, sums, outcome);
  }

 private:
  Outcome judge_flips(const Subject& subject, const PassPlan& plan, const PassSums& sums, Outcome outcome) const {
    const double admitted = std::ceil(text_.flips * static_cast<double>(values(plan)));
    if (static_cast<double>(sums.flips) <= admitted) return settle(outcome, subject.tensor.label(), "");
    outcome.wrong = sums.flips;
    return settle(outcome, subject.tensor.label(),
                  std::to_string(sums.flips) + " of " + std::to_string(values(plan)) + " codes are off by one; " +
                      number(admitted) + " may be");
  }

  Outcome judge_rows(const Subject& subject, const PassPlan& plan, const PassSums& sums) const {
    Outcome outcome = outcome_of(sums);
    const double rows = static_cast<double>(plan.count / plan.row),
                 admitted = std::floor((1 - *text_.share) * rows + 1e-9);
    if (static_cast<double>(sums.rows_wrong) <= admitted && sums.nonfinite == 0)
      return settle(outcome, subject.tensor.label(), "");
    return settle(outcome, subject.tensor.label(),
                  std::to_string(sums.rows_wrong) + " of " + number(rows) + " rows differ, " + number(admitted) +
                      " may; " + first_wrong(subject, plan, sums));
  }

  Outcome judge_rms(const Subject& subject, const PassSums& sums, Outcome outcome) const {
    if (text_.rms <= 0 || !text_.precision || sums.sum_error2 == 0) return settle(outcome, subject.tensor.label(), "");
    const double admitted = text_.rms * unit_roundoff(*text_.precision) * std::sqrt(sums.sum_expected2);
    outcome.rms_error = admitted > 0 ? std::sqrt(sums.sum_error2) / admitted : std::numeric_limits<double>::infinity();
    if (outcome.rms_error <= 1) return settle(outcome, subject.tensor.label(), "");
    return settle(
        outcome, subject.tensor.label(),
        "every element is within its tolerance, but the root mean square error is " + times(outcome.rms_error));
  }

  RuleText text_;
};

}  // namespace

std::unique_ptr<Rule> parse(const Tensor& tensor) { return std::make_unique<ParsedRule>(parse_text(tensor)); }

}  // namespace kbench::compare
