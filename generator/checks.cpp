// Faults of a definition that only the verifier's own readers can find: expressions, sizes, distributions, comparison
// rules.
#include <algorithm>
#include <sstream>

#include "generator/generator.h"
#include "verifier/compare/compare.h"
#include "verifier/inputs/inputs.h"

namespace kbench::generator {

std::vector<std::string> faults_of(const Problem& problem) {
  std::vector<std::string> faults;
  try {
    (void)problem_from_json(to_json(problem));
  } catch (const BadProblem& bad) {
    std::istringstream lines(bad.what());
    for (std::string line; std::getline(lines, line);) {
      // task.json has at its root what a definition keeps in `dims`.
      for (const char* key : {"tiny[", "test[", "graded[", "odd", "derived["})
        if (line.starts_with(key)) {
          line.insert(0, "dims.");
          break;
        }
      faults.push_back(line);
    }
    return faults;
  }
  const Dims dims = problem.with_derived(problem.tiny[0]).dims;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const Tensor& tensor = problem.tensors[i];
    const std::string key = "tensors[" + std::to_string(i) + "].";
    try {
      if (tensor.role != Role::output) (void)inputs::compile(problem, tensor, dims);
    } catch (const inputs::BadGenerator& bad) {
      faults.push_back(key + "gen: " + bad.what());
    }
    try {
      if (tensor.role != Role::input) (void)compare::parse(tensor);
    } catch (const compare::BadRule& bad) {
      faults.push_back(key + "rule: " + bad.what());
    }
  }
  if (faults.empty()) {
    try {
      (void)inputs::order(problem);
    } catch (const inputs::BadGenerator& bad) {
      faults.push_back(std::string("tensors: ") + bad.what());
    }
  }
  return faults;
}

}  // namespace kbench::generator
