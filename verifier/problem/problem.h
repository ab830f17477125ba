// A task as the verifier and the catalogue see it: `task.json`, typed and checked. Written by kbench-catalog, read by
// everyone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

// Bounds of a definition. What breaks one is a fault like any other.
inline constexpr std::size_t kTensorsMax = 64, kDimsMax = 32, kScalarsMax = 32,
                             kShapesMax = 8;  // kDimsMax: with derived ones; kShapesMax: of each kind
inline constexpr std::size_t kTensorRankMax = 6, kNameMax = 64, kExpressionMax = 1000, kTextMax = 4000;
inline constexpr std::size_t kProblemBytesMax = 1 << 20;                // of task.json
inline constexpr std::int64_t kTensorBytesMax = std::int64_t{1} << 40;  // of one tensor
inline constexpr int kGpusMax = 8;
inline constexpr int kKernelsMax = 1000;  // the largest kernels_max

enum class DType : std::uint8_t { f64, f32, bf16, f16, e4m3, e5m2, e8m0, e2m1x2, i8, u8, u16, i32, u32, i64, u64 };
std::size_t bytes_of(DType dtype);  // of one stored element; e2m1x2 is one byte holding two values
std::string_view name_of(DType dtype);
std::optional<DType> dtype_named(std::string_view name);
double unit_roundoff(DType dtype);  // u of the format: 2^-8 for bf16, 2^-24 for f32; integers: 0

enum class Role : std::uint8_t { input, output, inout };
// Of a task on several GPUs, where every tensor is there once a GPU: each its own data, or the same bytes on all.
enum class Placement : std::uint8_t { one, shard, replicated };  // one: the task has one GPU
enum class ScalarType : std::uint8_t { f32, f64, i64 };

using Dims = std::map<std::string, std::int64_t>;

// Integer arithmetic over dims: + - * / // % >> ( ) min(a,b) max(a,b). `/` must divide exactly, // and % round down, >>
// binds loosest. Throws BadExpression, which names the text and the place: unknown name, division by zero, inexact
// division, overflow of 64 bits.
struct BadExpression : std::runtime_error {
  using std::runtime_error::runtime_error;
};
std::int64_t evaluate(std::string_view expression, const Dims& dims);

struct Scalar {
  std::string name;
  ScalarType type;
  double value;
};

// What a comparison admits, in the rule's own units; measured by `kbench-catalog precision`. See compare/compare.h.
struct Tolerance {
  double max = 0, rms = 0;
};

struct Tensor {
  std::string name;
  DType dtype;
  std::vector<std::string> shape;  // expressions in dims
  Role role;
  std::string gen;   // input distribution (inputs/inputs.h); inputs and in-out only
  std::string rule;  // comparison rule (compare/compare.h); outputs and in-out only
  Tolerance tolerance;
  Placement placement = Placement::one;
  int gpu = 0;  // where it is, in a problem that spread() has made

  std::string label() const;  // "part", or "part[1]" of a task on several GPUs
};

struct Shape {
  std::string name;
  Dims dims;
};  // dims include the derived ones

struct Work {
  std::string flops, bytes, bound;
};  // credited work as expressions; bound names the peak that applies: memory, bf16, …
enum class Metric : std::uint8_t { tflops, gbytes };  // TFLOP/s or GB/s

struct Problem {
  std::string family, name, title, version, hash;  // hash: sha256 over all that defines the task's meaning
  int gpus = 1;
  Metric metric;
  std::vector<std::string> dims;                             // in the order of the arguments
  std::vector<std::pair<std::string, std::string>> derived;  // name, expression; passed after dims, in order
  std::vector<Scalar> scalars;
  std::vector<Tensor> tensors;  // in the order of the arguments: inputs and in-out, then outputs
  Work work;
  double peak_factor = 1;                 // guard factor on the physical peak; 0 means no guard
  int kernels_max = 0;                    // kernels that one call may execute on a GPU; 0: any number
  std::vector<Shape> tiny, test, graded;  // tiny has one
  std::map<std::string, std::pair<std::int64_t, std::int64_t>>
      odd;                             // dim -> range, ends included; dims not named: as in test[0]
  std::vector<std::string> languages;  // cuda, cpp, python
  std::vector<std::string> devices;    // cpu, cuda

  const Tensor* find(std::string_view tensor, int gpu = 0) const;
  std::vector<std::string> argument_dims() const;  // dims, then derived
  Shape with_derived(Shape shape) const;
  std::int64_t elements(const Tensor& tensor, const Dims& dims) const;
  std::int64_t bytes(const Tensor& tensor, const Dims& dims) const;
  double credited(const Dims& dims) const;                             // flops or bytes, as the metric says; of one GPU
  const std::vector<Shape>& graded_on(std::string_view device) const;  // cuda: graded; cpu: test
};

// The problem as it lies in memory: of a task on several GPUs each tensor once a GPU, beside one another in the order
// of the arguments. With one GPU: the same problem.
Problem spread(Problem problem);

// All faults of a definition at once, one a line: "tensors[2].shape: unknown name 'Q'".
struct BadProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};
Problem problem_from_json(std::string_view text);  // throws BadProblem
std::string to_json(const Problem& problem);       // stable: same problem, same bytes
Problem load_problem(const std::string& path);     // throws BadProblem, also for a file that cannot be read

}  // namespace kbench
