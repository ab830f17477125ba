// Floor, control and tolerance of a task, measured: what the independent implementation and the negative control differ
// from the reference by, in the units of each output's rule, on the cpu device.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "generator/render.h"
#include "verifier/compare/compare.h"
#include "verifier/device/device.h"
#include "verifier/inputs/inputs.h"

extern char** environ;

namespace kbench::generator {
namespace {

namespace fs = std::filesystem;
using verify::Device;
using verify::Region;

constexpr std::uint64_t kSeeds[] = {1, 2};
constexpr double kFactor = 4;         // tolerance over floor, and control over tolerance
constexpr double kRoundedMax = 1;     // the floor of an output that is rounded: u, and
constexpr double kRoundedRms = 0.41;  // the rms of a uniform rounding error over that of the value

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "kbench-precision-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The three functions of a task's header, compiled.
class Author {
 public:
  Author(const std::string& root, const Definition& definition) {
    const auto put = [&](const char* name, const std::string& text) { std::ofstream(folder_.path() / name) << text; };
    put("task.h", task_header(definition.problem));
    put("reference.h", definition.header);
    put("author.cpp", "#include \"task.h\"\n#include \"reference.h\"\nKB_AUTHOR_EXPORTS\n");
    const std::string library = (folder_.path() / "author.so").string();
    std::vector<std::string> words = {"g++",
                                      "-std=c++20",
                                      "-O3",
                                      "-march=native",
                                      "-fPIC",
                                      "-shared",
                                      "-I" + folder_.path().string(),
                                      "-I" + root + "/sdk",
                                      (folder_.path() / "author.cpp").string(),
                                      "-o",
                                      library};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    int status = 0;
    if (posix_spawnp(&child, "g++", nullptr, nullptr, argv.data(), environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0)
      throw std::runtime_error("catalog/" + definition.id() + ".h does not compile");
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~Author() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Author(const Author&) = delete;
  Author& operator=(const Author&) = delete;

  Device::Reference* function(const char* name) const {
    void* found = dlsym(handle_, name);
    if (found == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<Device::Reference*>(found);
  }

 private:
  ScratchFolder folder_;
  void* handle_ = nullptr;
};

// Memory of all tensors of one shape, and the arguments' struct over it.
class Bench {
 public:
  Bench(Device& device, const Problem& problem, const Shape& shape)
      : device_(device), problem_(problem), dims_(problem.with_derived(shape).dims) {
    for (const Tensor& tensor : problem.tensors) {
      const auto bytes = static_cast<std::uint64_t>(problem.bytes(tensor, dims_));
      tensors_.push_back(device.allocate(bytes));
      initial_.push_back(tensor.role == Role::inout ? device.allocate(bytes) : nullptr);
    }
  }

  const Dims& dims() const { return dims_; }
  Region initial(std::size_t tensor) const { return initial_[tensor] ? initial_[tensor]->region() : Region{}; }

  void fill(std::uint64_t seed) {
    for (const std::size_t i : inputs::order(problem_)) {
      inputs::Compiled compiled = inputs::compile(problem_, problem_.tensors[i], dims_);
      verify::Fill fill{compiled.program, {}, tensors_[i]->region()};
      for (const std::string& name : compiled.reads) fill.reads.push_back(tensors_[index_of(name)]->region());
      device_.fill(fill, seed);
      if (initial_[i]) device_.copy({tensors_[i]->region(), initial_[i]->region()});
    }
  }

  // Runs one implementation on the inputs as they were filled; returns copies of all that it writes, by tensor.
  std::vector<std::unique_ptr<verify::Buffer>> run(Device::Reference* function) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (initial_[i]) device_.copy({initial_[i]->region(), tensors_[i]->region()});
    const std::vector<std::uint64_t> slots = arguments();
    device_.run_reference(function, slots.data());
    std::vector<std::unique_ptr<verify::Buffer>> outputs;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      outputs.push_back(nullptr);
      if (problem_.tensors[i].role == Role::input) continue;
      outputs.back() = device_.allocate(tensors_[i]->region().bytes);
      device_.copy({tensors_[i]->region(), outputs.back()->region()});
    }
    return outputs;
  }

 private:
  std::size_t index_of(const std::string& name) const {
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i)
      if (problem_.tensors[i].name == name) return i;
    throw std::runtime_error("no tensor '" + name + "'");
  }

  std::vector<std::uint64_t> arguments() const {
    std::vector<std::uint64_t> slots;
    const auto push = [&](const auto& value) {
      slots.push_back(0);
      std::memcpy(&slots.back(), &value, sizeof value);
    };
    for (const std::string& name : problem_.argument_dims()) push(dims_.at(name));
    for (const Scalar& scalar : problem_.scalars) {
      if (scalar.type == ScalarType::f32) push(static_cast<float>(scalar.value));
      if (scalar.type == ScalarType::f64) push(scalar.value);
      if (scalar.type == ScalarType::i64) push(static_cast<std::int64_t>(scalar.value));
    }
    for (const auto& tensor : tensors_) push(tensor->region().data);
    return slots;
  }

  Device& device_;
  const Problem& problem_;
  Dims dims_;
  std::vector<std::unique_ptr<verify::Buffer>> tensors_, initial_;
};

struct Differences {
  double floor_max = 0, floor_rms = 0, control_max = INFINITY, control_rms = INFINITY;
  bool independent_equal = true, control_equal = false;  // by a rule without a tolerance
};

void compare_all(Device& device, const Problem& problem, const Author& author, const Shape& shape, std::uint64_t seed,
                 std::map<std::string, Differences>& differences) {
  Bench bench(device, problem, shape);
  bench.fill(seed);
  const auto expected = bench.run(author.function("kbench_reference"));
  const auto independent = bench.run(author.function("kbench_independent"));
  const auto control = bench.run(author.function("kbench_control"));
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const Tensor& tensor = problem.tensors[i];
    if (tensor.role == Role::input) continue;
    const auto rule = compare::parse(tensor);
    const auto judge = [&](const std::vector<std::unique_ptr<verify::Buffer>>& got) {
      return rule->judge(device, tensor, bench.dims(), got[i]->region(), expected[i]->region(), bench.initial(i));
    };
    const compare::Outcome near = judge(independent), far = judge(control);
    Differences& d = differences[tensor.name];
    d.floor_max = std::max(d.floor_max, near.max_error * kUnmeasured);
    d.floor_rms = std::max(d.floor_rms, near.rms_error);
    d.control_max = std::min(d.control_max, far.max_error * kUnmeasured);
    d.control_rms = std::min(d.control_rms, far.rms_error);
    d.independent_equal = d.independent_equal && near.equal;
    d.control_equal = d.control_equal || far.equal;
  }
}

// Up to two digits: a tolerance is no more exact than that.
double two_digits(double value) {
  if (value <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::stod(number_text(std::ceil(value / unit - 1e-9)) + "e" + std::to_string(std::lround(std::log10(unit))));
}

double three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::stod(text);
}

// The tolerance is four floors. A floor is at least what the rounding of the output alone can make of two honest
// results.
Measured conclude(const Tensor& tensor, const Differences& d) {
  Measured m{three_digits(d.floor_max),
             three_digits(d.floor_rms),
             three_digits(d.control_max),
             three_digits(d.control_rms),
             {}};
  const bool by_unit = tensor.rule.find("near") != std::string::npos || tensor.rule.find("delta") != std::string::npos;
  const bool relative = tensor.rule.find("elem") != std::string::npos || tensor.rule.find("tight") != std::string::npos;
  const double rounded_max = by_unit ? kRoundedMax : relative ? 2 * unit_roundoff(tensor.dtype) : 0;
  m.tolerance.max = two_digits(kFactor * std::max(d.floor_max, rounded_max));
  m.tolerance.rms = by_unit ? two_digits(kFactor * std::max(d.floor_rms, kRoundedRms)) : 0;
  return m;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

void write_section(const fs::path& file, const std::string& section) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (const auto at = text.find("\n[precision]"); at != std::string::npos) text.resize(at);
  while (text.ends_with("\n\n")) text.pop_back();
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text << "\n" << section;
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace

void measure_precision(const std::string& root, const std::string& id) {
  const Definition definition = load(root, id, Tolerances::to_be_measured);
  const Problem& problem = definition.problem;
  const Author author(root, definition);
  const std::unique_ptr<Device> device = verify::open_cpu_device();
  std::vector<Shape> shapes = problem.tiny;
  for (const auto& more : {problem.test, definition.precision_shapes})
    shapes.insert(shapes.end(), more.begin(), more.end());
  std::map<std::string, Differences> differences;
  for (const Shape& shape : shapes)
    for (const std::uint64_t seed : kSeeds) compare_all(*device, problem, author, shape, seed, differences);

  std::string section = "[precision]\nconditions = \"" + today() + ", cpu, tiny, test and precision dims, " +
                        std::to_string(std::size(kSeeds)) + " seeds each\"\n";
  std::string faults;
  bool any_control_fails = false;
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.role == Role::input) continue;
    const Differences& d = differences.at(tensor.name);
    if (tensor.tolerance.max != kUnmeasured) {
      if (!d.independent_equal) faults += id + ": " + tensor.name + ": independent differs from reference\n";
      any_control_fails = any_control_fails || !d.control_equal;
      continue;
    }
    const Measured m = conclude(tensor, d);
    any_control_fails = any_control_fails || d.control_max >= kFactor * m.tolerance.max ||
                        (m.tolerance.rms > 0 && d.control_rms >= kFactor * m.tolerance.rms);
    section += "\n[precision." + tensor.name + "]\nfloor_max = " + number_text(m.floor_max) +
               "\nfloor_rms = " + number_text(m.floor_rms) + "\ncontrol_max = " + number_text(m.control_max) +
               "\ncontrol_rms = " + number_text(m.control_rms) + "\nmax = " + number_text(m.tolerance.max) +
               "\nrms = " + number_text(m.tolerance.rms) + "\n";
    std::printf("%s %s: floor %.3g / %.3g, tolerance %.3g / %.3g, control %.3g / %.3g (max / rms)\n", id.c_str(),
                tensor.name.c_str(), m.floor_max, m.floor_rms, m.tolerance.max, m.tolerance.rms, m.control_max,
                m.control_rms);
  }
  if (!any_control_fails) faults += id + ": the control is not 4 tolerances away in any output\n";
  if (!faults.empty()) throw std::runtime_error(faults.substr(0, faults.size() - 1));
  if (section.find("[precision.") != std::string::npos)
    write_section(fs::path(root) / ("catalog/" + id + ".toml"), section);
}

}  // namespace kbench::generator
