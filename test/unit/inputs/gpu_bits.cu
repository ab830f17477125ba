// The GPU makes the same bits as the host: every function of maths.h, and all inputs of the plan's tasks at their
// tiny sizes. Exits with 77, skipped, where there is no GPU.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "verifier/inputs/generate.h"

using namespace kbench;
using nlohmann::json;

namespace {

struct Reads {
  const void* at[inputs::kReadsMax];
};
constexpr int kFunctions = 8;

KB_HD void functions_of(double x, double* y) {
  y[0] = inputs::logarithm(x);
  y[1] = inputs::exponential(x);
  y[2] = inputs::sine(x);
  y[3] = inputs::cosine(x);
  y[4] = inputs::hyperbolic_tangent(x);
  y[5] = inputs::power(10000, x);
  y[6] = inputs::log_plus_one(x);
  y[7] = inputs::normal_quantile(inputs::unit_interval(inputs::mix64(inputs::bits_of(x))));
}

__global__ void functions_kernel(const double* x, double* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) functions_of(x[i], y + kFunctions * i);
}
__global__ void elements_kernel(const __grid_constant__ inputs::Program program, std::uint64_t seed, Reads reads,
                                void* out) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < inputs::generation_units(program);
       i += gridDim.x * blockDim.x) {
    inputs::generate_unit(program, seed, i, reads.at, out);
  }
}
__global__ void rows_kernel(const __grid_constant__ inputs::Program program, std::uint64_t seed, int phase, Reads reads,
                            void* out, void* scratch) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < inputs::finish_units(program, phase);
       i += gridDim.x * blockDim.x) {
    inputs::finish_unit(program, seed, phase, i, reads.at, out, scratch);
  }
}

void* on_gpu(std::size_t bytes) {
  void* address = nullptr;
  if (cudaMalloc(&address, bytes + 8) != cudaSuccess) std::abort();
  return address;
}
void copy_back(void* to, const void* from, std::size_t bytes) {
  if (cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) std::abort();
}

bool functions_agree() {
  constexpr int kCount = 1 << 20;
  std::vector<double> x(kCount), y(kFunctions * kCount);
  for (int i = 0; i < kCount; ++i) x[i] = i % 3 == 0 ? i * 1e-4 : i % 3 == 1 ? i * -3e-5 : i * 0.37;
  auto* from = static_cast<double*>(on_gpu(x.size() * sizeof(double)));
  auto* to = static_cast<double*>(on_gpu(y.size() * sizeof(double)));
  cudaMemcpy(from, x.data(), x.size() * sizeof(double), cudaMemcpyHostToDevice);
  functions_kernel<<<kCount / 256, 256>>>(from, to, kCount);
  copy_back(y.data(), to, y.size() * sizeof(double));
  long differ[kFunctions] = {}, all = 0;
  for (int i = 0; i < kCount; ++i) {
    double here[kFunctions];
    functions_of(x[i], here);
    for (int k = 0; k < kFunctions; ++k) {
      const double there = y[kFunctions * i + k];
      if (inputs::bits_of(here[k]) != inputs::bits_of(there) && !(inputs::is_nan(here[k]) && inputs::is_nan(there)))
        ++differ[k], ++all;
    }
  }
  std::printf("functions: %ld of %d values differ\n", all, kFunctions * kCount);
  return all == 0;
}

// Makes the inputs of a task of the plan on both; false where a byte differs.
bool sample_agrees(const json& sample) {
  Problem problem;
  for (const json& tensor : sample["inputs"]) {
    std::vector<std::string> shape;
    for (const json& extent : tensor["shape"])
      shape.push_back(extent.is_string() ? extent.get<std::string>() : extent.dump());
    problem.tensors.push_back(
        {tensor["name"], *dtype_named(tensor["dtype"].get<std::string>()), shape, Role::input, tensor["gen"], "", {}});
  }
  for (const json& scalar : sample["scalars"])
    problem.scalars.push_back({scalar["name"], ScalarType::f64, scalar["value"]});
  const Dims dims = sample["dims"]["tiny"].get<Dims>();
  std::map<std::string, std::vector<std::byte>> here;
  std::map<std::string, void*> there;
  bool same = true;
  for (const std::size_t i : inputs::order(problem)) {
    const Tensor& tensor = problem.tensors[i];
    const inputs::Compiled compiled = inputs::compile(problem, tensor, dims);
    const inputs::Program& program = compiled.program;
    Reads host_reads{}, gpu_reads{};
    for (std::size_t k = 0; k < compiled.reads.size(); ++k) {
      host_reads.at[k] = here[compiled.reads[k]].data();
      gpu_reads.at[k] = there[compiled.reads[k]];
    }
    auto& out = here[tensor.name];
    out.resize(static_cast<std::size_t>(problem.bytes(tensor, dims)));
    for (std::int64_t e = 0; e < inputs::generation_units(program); ++e)
      inputs::generate_unit(program, 42, e, host_reads.at, out.data());
    std::vector<double> scratch(static_cast<std::size_t>(inputs::finish_scratch_bytes(program)) / sizeof(double));
    for (int phase = 0; phase < inputs::finish_phases(program); ++phase)
      for (std::int64_t e = 0; e < inputs::finish_units(program, phase); ++e)
        inputs::finish_unit(program, 42, phase, e, host_reads.at, out.data(), scratch.data());
    void* to = there[tensor.name] = on_gpu(out.size());
    elements_kernel<<<264, 256>>>(program, 42, gpu_reads, to);
    void* gpu_scratch = on_gpu(scratch.size() * sizeof(double));
    for (int phase = 0; phase < inputs::finish_phases(program); ++phase)
      rows_kernel<<<264, 256>>>(program, 42, phase, gpu_reads, to, gpu_scratch);
    cudaFree(gpu_scratch);
    std::vector<std::byte> back(out.size());
    copy_back(back.data(), to, back.size());
    if (back != out) {
      std::printf("differs: %s: %s\n", tensor.name.c_str(), tensor.gen.c_str());
      same = false;
    }
  }
  for (const auto& [name, address] : there) cudaFree(address);
  return same;
}

}  // namespace

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  bool same = functions_agree();
  int tasks = 0;
  for (const auto& family : std::filesystem::directory_iterator("catalog/plan")) {
    if (family.path().extension() != ".jsonl") continue;
    std::ifstream file(family.path());
    for (std::string text; std::getline(file, text); ++tasks) same = sample_agrees(json::parse(text)) && same;
  }
  std::printf("the inputs of %d tasks compared\n", tasks);
  return same && tasks == 400 ? 0 : 1;
}
