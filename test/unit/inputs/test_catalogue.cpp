// A sample of the catalogue's generators: one of each form, with the dims of its task at the tiny and the largest
// graded shape.
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "made.h"

using namespace kbench;
using nlohmann::json;

namespace {

bool all_compile(const Problem& problem, const Dims& dims) {
  try {
    for (const Tensor& tensor : problem.tensors) inputs::compile(problem, tensor, dims);
  } catch (const inputs::BadGenerator&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the catalogue's generators compile, and make tiny tensors", "[catalogue]") {
  std::ifstream file("test/unit/inputs/data/generators.jsonl");
  REQUIRE(file);
  int all = 0, compiled = 0;
  for (std::string text; std::getline(file, text);) {
    const json sample = json::parse(text);
    const std::string name = sample["tensor"];
    std::vector<inputs_test::Source> sources;
    for (const json& tensor : sample["tensors"]) {
      sources.push_back(
          {tensor["name"], *dtype_named(tensor["dtype"].get<std::string>()), tensor["shape"], tensor["gen"]});
    }
    const Problem problem = inputs_test::problem_of(sources);
    INFO(sample["task"] << " " << name << ": " << problem.find(name)->gen);
    ++all;
    try {
      for (const json& dims : sample["dims"]) inputs::compile(problem, *problem.find(name), dims.get<Dims>());
      ++compiled;
      CHECK(sample["compiles"] == true);
      if (!all_compile(problem, sample["dims"][0].get<Dims>())) continue;  // one that it reads does not
      const inputs_test::Made made(problem, sample["dims"][0].get<Dims>());
      CHECK(made.values(name).size() ==
            static_cast<std::size_t>(problem.elements(*problem.find(name), sample["dims"][0].get<Dims>())));
    } catch (const inputs::BadGenerator& fault) {
      INFO(fault.what());
      CHECK(sample["compiles"] == false);  // forms that a task must write in another way
    }
  }
  std::cout << compiled << " of " << all << " sampled forms compile\n";
  CHECK(all == 286);
}
