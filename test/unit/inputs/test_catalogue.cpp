// All generators of the plan (catalog/plan/): they compile at each of their task's sizes, and make the tiny tensors.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "made.h"

using namespace kbench;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

Problem problem_of(const json& task) {
  std::vector<inputs_test::Source> sources;
  for (const json& tensor : task["inputs"]) {
    std::vector<std::string> shape;
    for (const json& extent : tensor["shape"])
      shape.push_back(extent.is_string() ? extent.get<std::string>() : extent.dump());
    sources.push_back({tensor["name"], *dtype_named(tensor["dtype"].get<std::string>()), shape, tensor["gen"]});
  }
  Problem problem = inputs_test::problem_of(sources);
  for (const json& scalar : task["scalars"])
    problem.scalars.push_back({scalar["name"], ScalarType::f64, scalar["value"]});
  return problem;
}

std::vector<Dims> sizes_of(const json& task) {
  std::vector<Dims> sizes{task["dims"]["tiny"].get<Dims>()};
  for (const char* kind : {"test", "graded"})
    for (const json& dims : task["dims"][kind]) sizes.push_back(dims.get<Dims>());
  return sizes;
}

// What is wrong with a tensor's generator, or nothing.
std::string fault_of(const Problem& problem, const Tensor& tensor, const std::vector<Dims>& sizes) {
  try {
    for (const Dims& dims : sizes) inputs::compile(problem, tensor, dims);
    return "";
  } catch (const inputs::BadGenerator& fault) {
    return fault.what();
  }
}

}  // namespace

TEST_CASE("the plan's generators compile, and make tiny tensors", "[catalogue]") {
  int all = 0, compiled = 0;
  for (const auto& family : fs::directory_iterator("catalog/plan")) {
    if (family.path().extension() != ".jsonl") continue;
    std::ifstream file(family.path());
    for (std::string text; std::getline(file, text);) {
      const json task = json::parse(text);
      const Problem problem = problem_of(task);
      const std::vector<Dims> sizes = sizes_of(task);
      bool whole = true;
      for (const Tensor& tensor : problem.tensors) {
        const std::string fault = fault_of(problem, tensor, sizes);
        ++all;
        if (fault.empty())
          ++compiled;
        else
          std::cout << task["task"] << " " << fault << "\n", whole = false;
      }
      INFO(task["task"]);
      if (whole) CHECK_NOTHROW(inputs_test::Made(problem, sizes[0]));
    }
  }
  std::cout << compiled << " of " << all << " of the plan's generators compile\n";
  CHECK(all == 2237);
  CHECK(compiled == all);
}
