#include "generator/bench.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>

#include "verifier/compare/compare.h"
#include "verifier/inputs/inputs.h"

extern char** environ;

namespace kbench::generator {

namespace fs = std::filesystem;
namespace {

bool run(std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) throw std::runtime_error(words[0] + ": " + std::strerror(error));
  return waitpid(child, &status, 0) == child && status == 0;
}

// The headers whose functions run now, for the words of a crash: there no lock may be taken and no memory allocated.
std::array<std::atomic<const char*>, 64> running;

class Running {
 public:
  explicit Running(const std::string& header) {
    for (std::atomic<const char*>& place : running) {
      const char* none = nullptr;
      if (!place.compare_exchange_strong(none, header.c_str())) continue;
      place_ = &place;
      return;
    }
  }
  ~Running() {
    if (place_ != nullptr) *place_ = nullptr;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<const char*>* place_ = nullptr;
};

void say_crash(int signal) {
  static std::atomic_flag told;
  while (told.test_and_set()) pause();  // another thread crashed first, and ends this one as well
  std::array<char, 1024> text{};
  const auto add = [&](const char* word) {
    std::strncat(text.data(), word, text.size() - 1 - std::strlen(text.data()));
  };
  add("kbench-catalog: crashed (");
  add(signal == SIGFPE ? "arithmetic)" : "memory)");
  for (const std::atomic<const char*>& place : running) {
    const char* header = place;
    if (header == nullptr) continue;
    add(" in a function of ");
    add(header);
  }
  add("\n");
  if (::write(STDERR_FILENO, text.data(), std::strlen(text.data())) < 0) {
  }  // nobody to tell
  std::signal(signal, SIG_DFL);
  (void)raise(signal);
}

}  // namespace

void tell_crashes() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, say_crash);
}

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "kbench-catalog-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Author::Author(const std::string& root, const Definition& definition, bool cuda, std::vector<std::string> flags) {
  const auto put = [&](const char* name, const std::string& text) { std::ofstream(folder_.path() / name) << text; };
  put("task.h", task_header(definition.problem));
  put("reference.h", definition.header);
  put(cuda ? "author.cu" : "author.cpp", "#include \"task.h\"\n#include \"reference.h\"\nKB_AUTHOR_EXPORTS\n");
  const std::string folder = folder_.path().string(), library = folder + "/author.so";
  if (flags.empty()) flags = cuda ? std::vector<std::string>{"-O3"} : std::vector<std::string>{"-O2", "-march=native"};
  std::vector<std::string> words = {"g++", "-std=c++20", "-fPIC", "-shared", folder + "/author.cpp"};
  if (cuda)
    words = {"nvcc",       "-std=c++20", "--extended-lambda", "-arch=native",
             "-Xcompiler", "-fPIC",      "-shared",           folder + "/author.cu"};
  words.insert(words.end(), flags.begin(), flags.end());
  for (const std::string& word : {"-I" + folder, "-I" + root + "/sdk", std::string("-o"), library})
    words.push_back(word);
  if (!run(words)) throw std::runtime_error("catalog/" + definition.id() + ".h does not compile");
  handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw std::runtime_error(dlerror());
}

Author::~Author() {
  if (handle_ != nullptr) dlclose(handle_);
}

verify::Device::Reference* Author::function(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<verify::Device::Reference*>(found);
}

Bench::Bench(verify::Device& device, const Problem& problem, const Shape& shape)
    : device_(device),
      problem_(problem),
      dims_(problem.with_derived(shape).dims),
      header_("catalog/" + problem.family + "/" + problem.name + ".h") {
  for (const Tensor& tensor : problem.tensors) {
    const auto bytes = static_cast<std::uint64_t>(problem.bytes(tensor, dims_));
    tensors_.push_back(device.allocate(bytes, tensor.gpu));
    initial_.push_back(tensor.role == Role::inout ? device.allocate(bytes, tensor.gpu) : nullptr);
  }
}

verify::Region Bench::initial(std::size_t tensor) const {
  return initial_[tensor] ? initial_[tensor]->region() : verify::Region{};
}

std::size_t Bench::index_of(const std::string& name, int gpu) const {
  const Tensor* found = problem_.find(name, gpu);
  if (found == nullptr) throw std::runtime_error("no tensor '" + name + "'");
  return static_cast<std::size_t>(found - problem_.tensors.data());
}

void Bench::fill(std::uint64_t seed) {
  for (const std::size_t i : inputs::order(problem_)) {
    inputs::Compiled compiled = inputs::compile(problem_, problem_.tensors[i], dims_);
    verify::Fill fill{compiled.program, {}, tensors_[i]->region()};
    for (const std::string& name : compiled.reads)
      fill.reads.push_back(tensors_[index_of(name, problem_.tensors[i].gpu)]->region());
    device_.fill(fill, seed);
    if (initial_[i]) device_.copy({tensors_[i]->region(), initial_[i]->region()});
  }
}

void Bench::put(std::size_t tensor, const std::vector<std::byte>& content) {
  device_.write({tensors_[tensor]->region().data, content.size(), problem_.tensors[tensor].gpu}, content.data());
  if (initial_[tensor]) device_.copy({tensors_[tensor]->region(), initial_[tensor]->region()});
}

std::vector<std::uint64_t> Bench::arguments() const {
  std::vector<std::uint64_t> slots;
  const auto push = [&](const auto& value) {
    slots.push_back(0);
    std::memcpy(&slots.back(), static_cast<const void*>(&value), sizeof value);
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

Bench::Outputs Bench::run(verify::Device::Reference* function) {
  ++runs_;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (initial_[i]) device_.copy({initial_[i]->region(), tensors_[i]->region()});
    // Each run its own noise: what a function leaves unwritten is never what another wrote, or left, there.
    if (problem_.tensors[i].role == Role::output) device_.poison(tensors_[i]->region(), runs_);
  }
  const std::vector<std::uint64_t> slots = arguments();
  {
    const Running now(header_);
    device_.run_reference(function, slots.data());
  }
  Outputs outputs(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (problem_.tensors[i].role == Role::input) continue;
    outputs[i] = device_.allocate(tensors_[i]->region().bytes, problem_.tensors[i].gpu);
    device_.copy({tensors_[i]->region(), outputs[i]->region()});
  }
  return outputs;
}

std::map<std::string, Differences> differences(verify::Device& device, const Problem& problem, const Author& author,
                                               const std::vector<Shape>& shapes,
                                               const std::vector<std::uint64_t>& seeds,
                                               std::vector<double>* reference_seconds) {
  std::map<std::string, Differences> all;
  for (const Shape& shape : shapes) {
    for (const std::uint64_t seed : seeds) {
      Bench bench(device, problem, shape);
      bench.fill(seed);
      const Bench::Outputs expected = bench.run(author.function("kbench_reference"));
      if (reference_seconds != nullptr && seed == seeds.front()) {
        const auto start = std::chrono::steady_clock::now();
        (void)bench.run(author.function("kbench_reference"));
        reference_seconds->push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      const Bench::Outputs independent = bench.run(author.function("kbench_independent"));
      const Bench::Outputs control = bench.run(author.function("kbench_control"));
      for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
        const Tensor& tensor = problem.tensors[i];
        if (tensor.role == Role::input) continue;
        const auto rule = compare::parse(tensor);
        const auto judge = [&](verify::Region got) {
          return rule->judge(device, tensor, bench.dims(), got, expected[i]->region(), bench.initial(i));
        };
        const compare::Outcome near = judge(independent[i]->region()), far = judge(control[i]->region());
        device.zero(control[i]->region());
        const compare::Outcome nothing = judge(control[i]->region());
        const bool first = !all.contains(tensor.name);
        Differences& d = all[tensor.name];
        d.floor_max = std::max(d.floor_max, near.max_error);
        d.floor_rms = std::max(d.floor_rms, near.rms_error);
        d.control_max = first ? far.max_error : std::min(d.control_max, far.max_error);
        d.control_rms = first ? far.rms_error : std::min(d.control_rms, far.rms_error);
        d.zeros_max = first ? nothing.max_error : std::min(d.zeros_max, nothing.max_error);
        d.zeros_rms = first ? nothing.rms_error : std::min(d.zeros_rms, nothing.rms_error);
        d.independent_passes = d.independent_passes && near.equal;
        d.control_passes = d.control_passes || far.equal;
      }
    }
  }
  return all;
}

}  // namespace kbench::generator
