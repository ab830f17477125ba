// The three implementations of a task's header, compiled and run on a device of the verifier, outside any grading.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "generator/generator.h"
#include "verifier/device/device.h"

namespace kbench::generator {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Compiles <task>.h with g++, or with nvcc for the GPU at hand, with these flags or, if there are none, as the verifier
// compiles a reference. Throws std::runtime_error when that fails; the
// compiler's words are on stderr.
class Author {
 public:
  Author(const std::string& root, const Definition& definition, bool cuda = false, std::vector<std::string> flags = {});
  ~Author();
  Author(const Author&) = delete;
  Author& operator=(const Author&) = delete;

  verify::Device::Reference* function(const char* name) const;  // kbench_reference, kbench_independent, kbench_control

 private:
  ScratchFolder folder_;
  void* handle_ = nullptr;
};

// From now on a crash says which headers' functions were running before it ends the process as it would have.
void tell_crashes();

// Memory for all tensors at one shape, of a problem that is spread over its GPUs. `device` and `problem` outlive it.
class Bench {
 public:
  using Outputs = std::vector<std::unique_ptr<verify::Buffer>>;  // by tensor; null for inputs

  Bench(verify::Device& device, const Problem& problem, const Shape& shape);

  const Dims& dims() const { return dims_; }
  verify::Region initial(std::size_t tensor) const;  // an in-out tensor's content before a run, else empty

  verify::Region tensor(std::size_t index) const { return tensors_[index]->region(); }

  void fill(std::uint64_t seed);
  void put(std::size_t tensor, const std::vector<std::byte>& content);  // of an input or in-out tensor, instead
  // Runs one implementation on the inputs as they were filled; returns copies of all that it writes.
  Outputs run(verify::Device::Reference* function);

 private:
  std::size_t index_of(const std::string& name, int gpu) const;
  std::vector<std::uint64_t> arguments() const;

  verify::Device& device_;
  const Problem& problem_;
  Dims dims_;
  std::string header_;
  std::uint64_t runs_ = 0;
  std::vector<std::unique_ptr<verify::Buffer>> tensors_, initial_;
};

// What independent, control and zeros differ from the reference by, in the units of each output's rule; by its name, so
// that of several GPUs the worst counts.
struct Differences {
  double floor_max = 0, floor_rms = 0;      // the largest found
  double control_max = 0, control_rms = 0;  // the smallest found
  double zeros_max = 0, zeros_rms = 0;      // of zeros instead of the output, the smallest found
  bool independent_passes = true;           // at every shape, by the tolerance the problem has
  bool control_passes = false;              // at some shape
};
std::map<std::string, Differences> differences(verify::Device& device, const Problem& problem, const Author& author,
                                               const std::vector<Shape>& shapes,
                                               const std::vector<std::uint64_t>& seeds,
                                               std::vector<double>* reference_seconds = nullptr);

}  // namespace kbench::generator
