// Faults of a definition that only the verifier's own readers can find: expressions, sizes, distributions, comparison
// rules.
#include <algorithm>
#include <sstream>

#include "generator/generator.h"
#include "verifier/compare/compare.h"
#include "verifier/inputs/inputs.h"

namespace kbench::generator {

namespace {

// All that a grading may ask for: also the ends of the odd sizes.
std::vector<Shape> all_shapes(const Problem& problem) {
  std::vector<Shape> shapes = problem.tiny;
  for (const std::vector<Shape>* more : {&problem.test, &problem.graded})
    shapes.insert(shapes.end(), more->begin(), more->end());
  if (problem.odd.empty()) return shapes;
  for (const bool least : {true, false}) {
    Shape shape{least ? "the least odd sizes" : "the largest odd sizes", problem.test[0].dims};
    for (const auto& [name, range] : problem.odd) shape.dims[name] = least ? range.first : range.second;
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

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
  const std::vector<Shape> shapes = all_shapes(problem);
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const Tensor& tensor = problem.tensors[i];
    const std::string key = "tensors[" + std::to_string(i) + "].";
    for (const Shape& shape : shapes) {
      if (tensor.role == Role::output) break;
      try {
        (void)inputs::compile(problem, tensor, problem.with_derived(shape).dims);
      } catch (const inputs::BadGenerator& bad) {
        faults.push_back(key + "gen: " + bad.what() + " (" + shape.name + ")");
        break;
      } catch (const BadExpression& bad) {
        faults.push_back(key + "gen: " + bad.what() + " (" + shape.name + ")");
        break;
      }
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
