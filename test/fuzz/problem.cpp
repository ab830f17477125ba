// task.json: what is accepted is written and read back as the same, and can be reckoned with.
#include "verifier/problem/problem.h"
#include "test/fuzz/fuzz.h"
#include "verifier/inputs/inputs.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

void reckon(const Problem& problem, const Shape& bare) {
  const Shape shape = problem.with_derived(bare);
  problem.credited(shape.dims);
  for (const Tensor& tensor : problem.tensors) {
    require(problem.bytes(tensor, shape.dims) <= kTensorBytesMax, "a tensor within its limit");
    if (tensor.gen.empty()) continue;
    try {
      inputs::compile(problem, tensor, shape.dims);
    } catch (const inputs::BadGenerator&) {
    }
  }
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  std::string text;
  Problem problem;
  try {
    problem = problem_from_json({reinterpret_cast<const char*>(data), size});
  } catch (const BadProblem& bad) {
    require(*bad.what() != '\0', "a reason");
    return 0;
  }
  text = to_json(problem);
  require(to_json(problem_from_json(text)) == text, "the same problem");
  for (const auto* shapes : {&problem.tiny, &problem.test, &problem.graded})
    for (const Shape& shape : *shapes) reckon(problem, shape);
  return 0;
}
