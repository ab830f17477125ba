// What instruction.md says of one task: tables of arguments and sizes, the rules in words.
#include <cmath>
#include <iomanip>
#include <sstream>

#include "generator/render.h"

namespace kbench::generator {
namespace {

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string sentence(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string rounded(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return out.str();
}

std::string with_unit(double value, const std::string& unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  int prefix = 0;
  for (; value >= 1000 && prefix < 4; ++prefix) value /= 1000;
  return rounded(value) + " " + kPrefixes[prefix] + unit;
}

const char* role_text(Role role) {
  return role == Role::input ? "read" : role == Role::output ? "written" : "read and written in place";
}

std::string placement_text(const Tensor& tensor) {
  if (tensor.placement == Placement::one) return "";
  return tensor.placement == Placement::shard ? ", another on each GPU" : ", the same on each GPU";
}

std::string arguments_table(const Problem& problem) {
  std::string out = "| name | type | shape | |\n|---|---|---|---|\n";
  for (const Tensor& tensor : problem.tensors)
    out += "| " + code(tensor.name) + " | " + std::string(name_of(tensor.dtype)) + " | [" + join(tensor.shape, ", ") +
           "] | " + role_text(tensor.role) + placement_text(tensor) + " |\n";
  out.pop_back();
  return out;
}

// What a reader cannot guess from a format's name, for the formats that occur.
std::string dtype_notes(const Problem& problem) {
  const auto has = [&](DType dtype) {
    for (const Tensor& tensor : problem.tensors)
      if (tensor.dtype == dtype) return true;
    return false;
  };
  std::string out;
  if (has(DType::e4m3))
    out += " e4m3 is OCP E4M3FN: bias 7, largest 448, no infinity; casts round to nearest even and saturate.";
  if (has(DType::e5m2)) out += " e5m2 is OCP E5M2, largest 57344; casts round to nearest even and saturate.";
  if (has(DType::e8m0)) out += " e8m0 is OCP E8M0: 2^(byte - 127).";
  if (has(DType::e2m1x2)) out += " e2m1x2 is two FP4 numbers (OCP E2M1) in a byte, the even element in its low half.";
  return out;
}

std::string inputs_text(const Problem& problem) {
  std::string out = "Inputs are drawn anew for every call:\n";
  for (const Tensor& tensor : problem.tensors)
    if (tensor.role != Role::output) out += "\n- " + code(tensor.name) + ": " + code(tensor.gen);
  return out;
}

std::string dims_text(const Problem& problem, const Dims& dims) {
  std::vector<std::string> parts;
  for (const std::string& name : problem.argument_dims()) parts.push_back(name + " = " + with_commas(dims.at(name)));
  return join(parts, ", ");
}

std::string shapes_table(const Problem& problem) {
  std::string out = problem.gpus > 1 ? "| on | size | credited work, a GPU | tensors, a GPU |\n|---|---|---|---|\n"
                                     : "| on | size | credited work | tensors |\n|---|---|---|---|\n";
  const auto add = [&](const std::string& device, const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes) {
      const double credit = problem.credited(shape.dims);
      double bytes = 0;
      for (const Tensor& tensor : problem.tensors) bytes += static_cast<double>(problem.bytes(tensor, shape.dims));
      out += "| " + device + " | " + dims_text(problem, shape.dims) + " | " +
             with_unit(credit, problem.metric == Metric::tflops ? "FLOP" : "B") + " | " + with_unit(bytes, "B") +
             " |\n";
    }
  };
  for (const std::string& device : problem.devices) add(device == "cuda" ? "GPU" : "CPU", problem.graded_on(device));
  out.pop_back();
  return out;
}

std::string odd_sentence(const Problem& problem) {
  if (problem.odd.empty()) return "Other sizes are not asked for.";
  std::vector<std::string> ranges;
  ranges.reserve(problem.odd.size());
  for (const auto& [name, range] : problem.odd)
    ranges.push_back(name + " from " + with_commas(range.first) + " to " + with_commas(range.second));
  Dims others = problem.test[0].dims;
  std::vector<std::string> fixed;
  for (const std::string& name : problem.dims)
    if (!problem.odd.contains(name)) fixed.push_back(name + " = " + with_commas(others.at(name)));
  return "Each grading also tries a few sizes drawn in secret, untimed: " + join(ranges, ", ") +
         (fixed.empty() ? "" : ", with " + join(fixed, ", ")) +
         ". Whether they pass is reported; they do not enter the reward.";
}

std::string scale_text(const std::string& rule) {
  if (rule.find("scale=row") != std::string::npos) return "the root mean square of r over its row (the last index)";
  if (rule.find("scale=outer") != std::string::npos)
    return "the root mean square of r over its row times that over its column, divided by that over all of r";
  return "the root mean square of r over the whole tensor";
}

double unit_of(const Tensor& tensor) {
  const auto at = tensor.rule.find("precision=");
  if (at != std::string::npos) {
    const auto end = tensor.rule.find_first_of(",)", at);
    if (const auto dtype = dtype_named(tensor.rule.substr(at + 10, end - at - 10))) return unit_roundoff(*dtype);
  }
  return unit_roundoff(tensor.dtype);
}

std::string rule_text(const Tensor& tensor) {
  const std::string name = code(tensor.name);
  const std::string max = rounded(tensor.tolerance.max), rms = rounded(tensor.tolerance.rms);
  const auto starts = [&](const char* what) { return tensor.rule.starts_with(what); };
  if (tensor.rule == "exact") return name + ": every bit as in the reference.";
  if (starts("near"))
    return name + ": with r the reference's value, y yours, s " + scale_text(tensor.rule) + " and u = 2^" +
           std::to_string(static_cast<int>(std::lround(std::log2(unit_of(tensor))))) + ", |y - r| <= " + max +
           " u (|r| + s) for every element, and rms(y - r) <= " + rms + " u rms(r) over the tensor.";
  if (starts("elem")) return name + ": |y - r| <= " + max + " |r| for every element.";
  if (starts("codes(value"))
    return name + ": every code as in the reference, but for a share of at most " +
           tensor.rule.substr(tensor.rule.find("<=") + 2, tensor.rule.rfind(')') - tensor.rule.find("<=") - 2) +
           " that may be its neighbour.";
  if (starts("abs")) return name + ": |y - r| <= " + max + " for every element.";
  if (starts("tight")) return name + ": |y - r| <= " + max + " |r| for every element.";
  return name + ": rule " + code(tensor.rule) + ", see docs/tasks.md of kbench.";
}

std::string languages_text(const Problem& problem) {
  std::string out;
  for (const std::string& language : problem.languages) {
    if (language == "cuda")
      out +=
          "- **cuda**: one or more `.cu` files (and `.cpp`, `.h`, `.cuh`), compiled together by nvcc for the GPU at "
          "hand. They define "
          "`kbench_run` of `task.h`: launch on the stream given and return 0.\n";
    if (language == "cpp")
      out +=
          "- **cpp**: one or more `.cpp` files (and headers), compiled together by g++ as C++20. They define "
          "`kbench_run` of `task.h`: do "
          "the work and return 0.\n";
    if (language == "python")
      out +=
          "- **python**: `solution.py` (and other `.py` files) with a function `kbench_run`, which gets every argument "
          "by name: numbers, "
          "and PyTorch tensors over the judge's memory. PyTorch and Triton are there where the image has them; their "
          "compilation belongs "
          "to the untimed calls.\n";
  }
  out.pop_back();
  return out;
}

std::string gpus_sentence(const Problem& problem) {
  if (problem.gpus == 1) return "";
  const std::string gpus = std::to_string(problem.gpus);
  return " The task is for " + gpus + " GPUs, and each tensor is there " + gpus + " times, " + code("name[i]") +
         " in the memory of GPU i.";
}

std::string gpus_paragraph(const Problem& problem) {
  if (problem.gpus == 1) return "";
  const std::string first = problem.tensors.front().name, gpus = std::to_string(problem.gpus);
  return "\n\n**Several GPUs.** One call, in one process, does the work of all " + gpus +
         " GPUs. A tensor is an array of " + gpus + " pointers (python: a list of tensors): " + code(first + "[1]") +
         " lies\nin the memory of GPU 1. Kernels of every GPU may read and write the tensors of every other directly; "
         "memory of your own needs\n`cudaDeviceEnablePeerAccess`. What `kbench_run` gets as its stream is an array of "
         "streams, one a GPU, `kbench_stream_of(stream, i)`; GPU 0\nis current. The call has ended when the work on "
         "all of them has. On the cpu device all of it is plain memory, and the streams are null.";
}

std::string rules_paragraph(const Problem& problem) {
  if (problem.kernels_max == 0) return "";
  const bool one = problem.kernels_max == 1;
  return "\n\n**But on a GPU a call executes at most " + std::to_string(problem.kernels_max) + " kernel" +
         (one ? "" : "s") + "**" +
         (one ? ", which stays on the device until the work is done (a persistent kernel)" : "") +
         ". Kernels of all streams,\ngraphs and threads of your process count; copies and memsets of the driver do "
         "not, nor "
         "does a size's first, untimed call. Besides the\ntimed runs there is one like them whose kernels are counted "
         "and "
         "whose outputs are compared. More kernels in a call of it, or none, end\nthe grading as `rule_violation` with "
         "reward 0.";
}

}  // namespace

void add_instruction_fields(const Definition& definition, std::map<std::string, std::string>& fields) {
  const Problem& problem = definition.problem;
  std::vector<std::string> scalars, derived, rules;
  for (const Scalar& scalar : problem.scalars)
    scalars.push_back(code(scalar.name) + " = " + number_text(scalar.value) + " (" + c_type(scalar.type) + ")");
  for (const auto& [name, expression] : problem.derived)
    derived.push_back(code(std::string(name).append(" = ").append(expression)));
  for (const Tensor& tensor : problem.tensors)
    if (tensor.role != Role::input) rules.push_back("- " + rule_text(tensor));
  fields["op"] = sentence(definition.op);
  fields["source"] = sentence(definition.source);
  fields["arguments_table"] = arguments_table(problem);
  fields["scalars_sentence"] = scalars.empty() ? "" : " Scalars: " + join(scalars, ", ") + ".";
  fields["derived_sentence"] = derived.empty() ? "" : " Passed after the dimensions: " + join(derived, ", ") + ".";
  fields["dtype_notes"] = dtype_notes(problem);
  fields["inputs_text"] = inputs_text(problem);
  fields["shapes_table"] = shapes_table(problem);
  fields["odd_sentence"] = odd_sentence(problem);
  fields["credit"] = problem.metric == Metric::tflops ? problem.work.flops : problem.work.bytes;
  fields["credit_unit"] = problem.metric == Metric::tflops ? "floating-point operations" : "bytes";
  fields["rules_text"] = join(rules, "\n");
  fields["languages_text"] = languages_text(problem);
  fields["gpus_sentence"] = gpus_sentence(problem);
  fields["credited_gpu"] = problem.gpus > 1 ? " and GPU" : "";
  fields["gpus_paragraph"] = gpus_paragraph(problem);
  fields["rules_paragraph"] = rules_paragraph(problem);
  fields["rules_metadata"] = problem.kernels_max == 0 ? "" : "\nkernels_max = " + std::to_string(problem.kernels_max);
}

}  // namespace kbench::generator
