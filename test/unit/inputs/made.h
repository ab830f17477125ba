// Tensors made on the host by the functions that the devices run.
#pragma once

#include <map>
#include <numeric>

#include "verifier/inputs/generate.h"

namespace kbench::inputs_test {

struct Source {
  std::string name;
  DType dtype;
  std::vector<std::string> shape;
  std::string gen;
};

inline Problem problem_of(const std::vector<Source>& sources) {
  Problem problem{};
  for (const Source& source : sources)
    problem.tensors.push_back({source.name, source.dtype, source.shape, Role::input, source.gen, "", {}});
  return problem;
}

// All tensors of a problem, in the order that their generators ask for.
class Made {
 public:
  Made(const Problem& problem, const Dims& dims, std::uint64_t seed = 1) {
    for (const std::size_t i : inputs::order(problem)) make(problem, problem.tensors[i], dims, seed);
  }
  explicit Made(const std::vector<Source>& sources, const Dims& dims = {}, std::uint64_t seed = 1)
      : Made(problem_of(sources), dims, seed) {}

  const std::vector<std::byte>& bytes(const std::string& name) const { return bytes_.at(name); }
  std::vector<double> values(const std::string& name) const {
    std::vector<double> result;
    const auto& [program, bytes] = std::pair{programs_.at(name), &bytes_.at(name)};
    for (std::int64_t i = 0; i < program.elements; ++i) result.push_back(inputs::load(program.dtype, bytes->data(), i));
    return result;
  }
  const inputs::Program& program(const std::string& name) const { return programs_.at(name); }

 private:
  void make(const Problem& problem, const Tensor& tensor, const Dims& dims, std::uint64_t seed) {
    const auto compiled = inputs::compile(problem, tensor, dims);
    const inputs::Program& program = programs_[tensor.name] = compiled.program;
    auto& out = bytes_[tensor.name];
    out.resize(static_cast<std::size_t>(problem.bytes(tensor, dims)));
    std::vector<const void*> reads;
    for (const std::string& name : compiled.reads) reads.push_back(bytes_.at(name).data());
    // Backwards: nothing depends on the order.
    for (std::int64_t i = inputs::generation_units(program); i-- > 0;)
      inputs::generate_unit(program, seed, i, reads.data(), out.data());
    std::vector<double> scratch(static_cast<std::size_t>(inputs::finish_scratch_bytes(program)) / sizeof(double));
    for (int phase = 0; phase < inputs::finish_phases(program); ++phase)
      for (std::int64_t i = inputs::finish_units(program, phase); i-- > 0;)
        inputs::finish_unit(program, seed, phase, i, reads.data(), out.data(), scratch.data());
  }

  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, inputs::Program> programs_;
};

inline std::vector<double> made(const std::string& gen, DType dtype, const std::vector<std::string>& shape,
                                const Dims& dims = {}, std::uint64_t seed = 1) {
  return Made({{"x", dtype, shape, gen}}, dims, seed).values("x");
}

inline double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
inline double variance(const std::vector<double>& x) {
  const double m = mean(x);
  return std::accumulate(x.begin(), x.end(), 0.0, [m](double sum, double v) { return sum + (v - m) * (v - m); }) /
         static_cast<double>(x.size());
}

inline std::uint64_t fingerprint(const void* data, std::size_t bytes) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037ull;
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
  return hash;
}

}  // namespace kbench::inputs_test
