#include "verifier/problem/problem.h"

#include <array>
#include <cmath>

namespace kbench {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::size_t bytes;
  int mantissa_bits;  // stored ones; -1: integers and scales, which have no roundoff
};
constexpr std::array<DTypeFacts, 15> kDTypes{{{"f64", 8, 52},
                                              {"f32", 4, 23},
                                              {"bf16", 2, 7},
                                              {"f16", 2, 10},
                                              {"e4m3", 1, 3},
                                              {"e5m2", 1, 2},
                                              {"e8m0", 1, -1},
                                              {"e2m1x2", 1, 1},
                                              {"i8", 1, -1},
                                              {"u8", 1, -1},
                                              {"u16", 2, -1},
                                              {"i32", 4, -1},
                                              {"u32", 4, -1},
                                              {"i64", 8, -1},
                                              {"u64", 8, -1}}};

const DTypeFacts& facts(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)); }

std::int64_t product(std::int64_t a, std::int64_t b, const Tensor& tensor) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw BadExpression("tensor '" + tensor.name + "': overflow of 64 bits");
  return result;
}

}  // namespace

std::size_t bytes_of(DType dtype) { return facts(dtype).bytes; }
std::string_view name_of(DType dtype) { return facts(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

double unit_roundoff(DType dtype) {
  const int bits = facts(dtype).mantissa_bits;
  return bits < 0 ? 0 : std::ldexp(1.0, -(bits + 1));
}

std::string Tensor::label() const {
  return placement == Placement::one ? name : name + "[" + std::to_string(gpu) + "]";
}

const Tensor* Problem::find(std::string_view tensor, int gpu) const {
  for (const Tensor& candidate : tensors) {
    if (candidate.name == tensor && candidate.gpu == gpu) return &candidate;
  }
  return nullptr;
}

std::vector<std::string> Problem::argument_dims() const {
  std::vector<std::string> names = dims;
  for (const auto& [derived_name, expression] : derived) names.push_back(derived_name);
  return names;
}

Shape Problem::with_derived(Shape shape) const {
  for (const auto& [derived_name, expression] : derived) shape.dims[derived_name] = evaluate(expression, shape.dims);
  return shape;
}

std::int64_t Problem::elements(const Tensor& tensor, const Dims& at) const {
  std::int64_t count = 1;
  for (const std::string& extent : tensor.shape) {
    const std::int64_t value = evaluate(extent, at);
    if (value < 0) throw BadExpression("'" + extent + "': an extent is " + std::to_string(value));
    count = product(count, value, tensor);
  }
  return count;
}

std::int64_t Problem::bytes(const Tensor& tensor, const Dims& at) const {
  return product(elements(tensor, at), static_cast<std::int64_t>(bytes_of(tensor.dtype)), tensor);
}

double Problem::credited(const Dims& at) const {
  return static_cast<double>(evaluate(metric == Metric::tflops ? work.flops : work.bytes, at));
}

Problem spread(Problem problem) {
  std::vector<Tensor> all;
  for (const Tensor& tensor : problem.tensors) {
    for (int gpu = 0; gpu < problem.gpus; ++gpu) {
      all.push_back(tensor);
      all.back().gpu = gpu;
    }
  }
  problem.tensors = std::move(all);
  return problem;
}

const std::vector<Shape>& Problem::graded_on(std::string_view device) const { return device == "cuda" ? graded : test; }

}  // namespace kbench
