// The files of a task folder.
#include "generator/render.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kbench::generator {
namespace {

std::string read_template(const std::string& root, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(root) / "generator" / "templates" / name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  parts.reserve(values.size());
  for (const std::string& value : values) parts.push_back(quoted(value));
  return join(parts, ", ");
}

// One local variable an argument, so that a stub shows what there is.
std::string unpack(const Problem& problem) {
  std::ostringstream out;
  const auto take = [&](const std::string& type, const std::string& name) {
    out << "  [[maybe_unused]] const " << type << " " << name << " = args->" << name << ";\n";
  };
  for (const std::string& dim : problem.argument_dims()) take("long long", dim);
  for (const Scalar& scalar : problem.scalars) take(c_type(scalar.type), scalar.name);
  // Of several GPUs: where the pointers are, one a GPU.
  for (const Tensor& tensor : problem.tensors)
    out << "  [[maybe_unused]] " << (tensor.role == Role::input ? "const " : "") << c_type(tensor.dtype) << "* const"
        << (problem.gpus > 1 ? "* " : " ") << tensor.name << " = args->" << tensor.name << ";\n";
  std::string text = out.str();
  text.pop_back();
  return text;
}

void add_python_fields(const Problem& problem, std::map<std::string, std::string>& fields) {
  std::vector<std::string> parameters = problem.argument_dims(), outputs, call, dims, derived, scalars, tensors;
  for (const std::string& dim : problem.dims) call.push_back(dim + "=" + std::to_string(problem.tiny[0].dims.at(dim)));
  for (const auto& [name, expression] : problem.derived)
    derived.push_back("(" + quoted(name) + ", " + quoted(expression) + ")");
  for (const Scalar& scalar : problem.scalars) {
    parameters.push_back(scalar.name);
    const char* type = scalar.type == ScalarType::f32 ? "f32" : scalar.type == ScalarType::f64 ? "f64" : "i64";
    scalars.push_back("(" + quoted(scalar.name) + ", " + quoted(type) + ", " + number_text(scalar.value) + ")");
  }
  for (const Tensor& tensor : problem.tensors) {
    parameters.push_back(tensor.name);
    call.push_back(tensor.name + "=" + tensor.name);
    if (tensor.role != Role::input) outputs.push_back(tensor.name);
    tensors.push_back("        (" + quoted(tensor.name) + ", " + quoted(std::string(name_of(tensor.dtype))) + ", [" +
                      list(tensor.shape) + "]),");
  }
  const bool several = problem.gpus > 1;
  fields["python_tensors_are"] =
      several ? "lists of PyTorch tensors, one a GPU" : "PyTorch tensors on the task's device";
  fields["python_places"] = several ? "a list of them for each argument, one a GPU" : "all on the same device";
  fields["python_gpus"] = several ? "\n    gpus=" + std::to_string(problem.gpus) + "," : "";
  fields["python_parameters"] = join(parameters, ", ");
  fields["python_outputs"] = join(outputs, ", ");
  fields["python_call"] = join(call, ", ");
  fields["python_dims"] = list(problem.dims);
  fields["python_derived"] = join(derived, ", ");
  fields["python_scalars"] = join(scalars, ", ");
  fields["python_tensors"] = join(tensors, "\n");
}

// What the files for CUDA and for Docker say of the GPUs.
void add_gpu_fields(const Problem& problem, std::map<std::string, std::string>& fields) {
  const bool several = problem.gpus > 1;
  fields["cuda_launch"] = several
                              ? "Launch on each GPU's stream (cudaSetDevice first) and return; the caller synchronises."
                              : "Launch on `stream` and return; the caller synchronises.";
  fields["cuda_stream"] = several ? "auto* const stream = static_cast<const kbench_stream*>(stream_);  // one a GPU"
                                  : "auto stream = static_cast<cudaStream_t>(stream_);";
  std::vector<std::string> ids = {"\"${KBENCH_GPU:-0}\""}, names = {"GPU $KBENCH_GPU (0)"};
  for (int gpu = 1; gpu < problem.gpus; ++gpu) {
    const std::string number = std::to_string(gpu);
    ids.push_back("\"${KBENCH_GPU_" + number + ":-" + number + "}\"");
    names.push_back("$KBENCH_GPU_" + number + " (" + number + ")");
  }
  fields["compose_ids"] = join(ids, ", ");
  fields["compose_gpus"] = join(names, ", ");
}

std::int64_t set_bytes(const Problem& problem, const Dims& dims) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : problem.tensors) bytes += problem.bytes(tensor, dims);
  return bytes;
}

std::map<std::string, std::string> fields_of(const Definition& definition) {
  const Problem& problem = definition.problem;
  std::int64_t largest = 0;
  for (const Shape& shape : problem.graded) largest = std::max(largest, set_bytes(problem, shape.dims));
  std::map<std::string, std::string> fields{
      {"title", problem.title},
      {"title_quoted", quoted(problem.title)},
      {"name", problem.name},
      {"family", problem.family},
      {"semver", problem.version.find('.') == std::string::npos ? problem.version + ".0.0" : problem.version},
      {"metric", problem.metric == Metric::tflops ? "TFLOP/s" : "GB/s"},
      {"gpus", std::to_string(problem.gpus)},
      {"gpu_mem_mb", std::to_string(4 * largest / 1'000'000 + 2'000)},  // inputs, outputs, snapshots, references
      {"hash", problem.hash},
      {"keywords_quoted", list(definition.keywords)},
      {"unpack", unpack(problem)},
  };
  add_python_fields(problem, fields);
  add_gpu_fields(problem, fields);
  add_instruction_fields(definition, fields);
  return fields;
}

}  // namespace

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string all;
  for (std::size_t i = 0; i < parts.size(); ++i) all += (i == 0 ? "" : between) + parts[i];
  return all;
}

std::string number_text(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  if (error != std::errc()) throw std::runtime_error("a number has no text");
  return {text, end};
}

std::string fill(const std::string& file, const std::string& text, const std::map<std::string, std::string>& fields) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t open; (open = text.find("{{", at)) != std::string::npos;) {
    const std::size_t close = text.find("}}", open);
    if (close == std::string::npos) throw std::runtime_error(file + ": '{{' without '}}'");
    const std::string name = text.substr(open + 2, close - open - 2);
    const auto field = fields.find(name);
    if (field == fields.end()) throw std::runtime_error(file + ": no value for " + text.substr(open, close + 2 - open));
    out += text.substr(at, open - at) + field->second;
    at = close + 2;
  }
  return out + text.substr(at);
}

std::string c_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::i8:
      return "std::int8_t";
    case DType::u8:
      return "std::uint8_t";
    case DType::u16:
      return "std::uint16_t";
    case DType::i32:
      return "std::int32_t";
    case DType::u32:
      return "std::uint32_t";
    case DType::i64:
      return "std::int64_t";
    case DType::u64:
      return "std::uint64_t";
    default:
      return "kb::" + std::string(name_of(dtype));
  }
}

const char* c_type(ScalarType type) {
  return type == ScalarType::f32 ? "float" : type == ScalarType::f64 ? "double" : "long long";
}

std::string task_header(const Problem& problem) {
  std::ostringstream out;
  out << "// " << problem.title << ": the arguments. Generated by kbench-catalog; do not edit.\n"
      << "#pragma once\n\n#include <cstdint>\n\n#include \"kbench/abi.h\"\n#include \"kbench/types.h\"\n\n"
      << "// Each field takes one 8-byte slot" << (problem.gpus > 1 ? ", a tensor's one for each GPU" : "")
      << ". Tensors are row-major and contiguous, the last index fastest.\nstruct kbench_args {\n";
  for (const std::string& dim : problem.dims) out << "  long long " << dim << ";\n";
  for (const auto& [name, expression] : problem.derived)
    out << "  long long " << name << ";  // " << expression << "\n";
  for (const Scalar& scalar : problem.scalars)
    out << "  alignas(8) " << c_type(scalar.type) << " " << scalar.name << ";  // " << number_text(scalar.value)
        << "\n";
  for (const Tensor& tensor : problem.tensors) {
    const char* role = tensor.role == Role::input   ? ""
                       : tensor.role == Role::inout ? ", read and written"
                                                    : ", written";
    const char* placement = tensor.placement == Placement::shard        ? ", another on each GPU"
                            : tensor.placement == Placement::replicated ? ", the same on each GPU"
                                                                        : "";
    out << "  " << (tensor.role == Role::input ? "const " : "") << c_type(tensor.dtype) << "* " << tensor.name
        << (problem.gpus > 1 ? "[" + std::to_string(problem.gpus) + "]" : "") << ";  // [" << join(tensor.shape, ", ")
        << "]" << role << placement << "\n";
  }
  const std::size_t slots = problem.argument_dims().size() + problem.scalars.size() +
                            problem.tensors.size() * static_cast<std::size_t>(problem.gpus);
  out << "};\nstatic_assert(sizeof(kbench_args) == " << slots << " * 8);\n\n";
  if (problem.gpus > 1)
    out << "inline constexpr int kbench_gpus = " << problem.gpus << ";\n"
        << "// What kbench_run gets as `stream` is where as many streams are, one a GPU.\n"
        << "inline kbench_stream kbench_stream_of(kbench_stream streams, int gpu) {\n"
        << "  return static_cast<const kbench_stream*>(streams)[gpu];\n}\n\n";
  out << "// What a submission in C++ or CUDA defines.\n"
      << "extern \"C\" __attribute__((visibility(\"default\"))) int kbench_run(const kbench_args* args, kbench_stream "
         "stream);\n";
  return out.str();
}

std::map<std::string, std::string> render(const std::string& root, const Definition& definition) {
  const std::map<std::string, std::string> fields = fields_of(definition);
  const auto filled = [&](const char* name) { return fill(name, read_template(root, name), fields); };
  const std::string json = to_json(definition.problem), header = task_header(definition.problem);
  std::map<std::string, std::string> files{
      {"instruction.md", filled("instruction.md")},
      {"task.toml", filled("task.toml")},
      {"environment/Dockerfile", filled("environment.Dockerfile")},
      {"environment/instruction.md", filled("instruction.md")},
      {"environment/task.json", json},
      {"environment/task.h", header},
      {"environment/reference.h", definition.public_header},
      {"environment/reference.py", filled("reference.py")},
      {"environment/solution/solution.cpp", filled("solution.cpp.in")},
      {"environment/solution/solution.cu", filled("solution.cu.in")},
      {"environment/solution/solution.py", filled("solution.py")},
      {"tests/Dockerfile", filled("tests.Dockerfile")},
      {"tests/task.json", json},
      {"tests/task.h", header},
      {"tests/reference.h", definition.header},
      {"tests/test.sh", filled("test.sh")},
  };
  const std::vector<std::string>& devices = definition.problem.devices;
  if (std::find(devices.begin(), devices.end(), "cuda") != devices.end())
    for (const char* place : {"environment/docker-compose.yaml", "tests/docker-compose.yaml"})
      files[place] = filled("docker-compose.yaml");
  return files;
}

}  // namespace kbench::generator
