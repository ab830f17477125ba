// Every task in catalog/: its folder is what the generator makes of it, its independent implementation agrees with its
// reference by the task's own rules, its control does not.
#include <catch2/catch.hpp>

#include "generator/bench.h"

using namespace kbench;
using namespace kbench::generator;

TEST_CASE("tasks/ has not drifted from catalog/") {
  std::vector<Definition> all;
  for (const std::string& id : find(".", {})) {
    all.push_back(load(".", id));
    const std::vector<std::string> differs = write("tasks/" + id, render(".", all.back()), true);
    INFO(id << ": run kbench-catalog generate; " << (differs.empty() ? "" : differs[0]));
    CHECK(differs.empty());
  }
  CHECK(write_rest(".", all, true).empty());
}

TEST_CASE("at tiny dims the independent implementation passes and the control fails") {
  const std::unique_ptr<verify::Device> device = verify::open_cpu_device();
  for (const std::string& id : find(".", {})) {
    INFO(id);
    const Definition definition = load(".", id);
    const Author author(".", definition);
    bool control_fails = false;
    for (const auto& [tensor, found] :
         differences(*device, definition.problem, author, definition.problem.tiny, {11, 12, 13})) {
      INFO(tensor);
      CHECK(found.independent_passes);
      control_fails = control_fails || !found.control_passes;
    }
    CHECK(control_fails);
  }
}

TEST_CASE("the least and the largest odd sizes work") {
  const std::unique_ptr<verify::Device> device = verify::open_cpu_device();
  for (const std::string& id : find(".", {})) {
    INFO(id);
    const Definition definition = load(".", id);
    const Author author(".", definition);
    std::vector<Shape> shapes;
    for (const bool least : {true, false}) {
      Shape shape{"odd", {}};
      for (const std::string& dim : definition.problem.dims) shape.dims[dim] = definition.problem.test[0].dims.at(dim);
      for (const auto& [dim, range] : definition.problem.odd) shape.dims[dim] = least ? range.first : range.second;
      shapes.push_back(shape);
    }
    for (const auto& [tensor, found] : differences(*device, definition.problem, author, shapes, {21})) {
      INFO(tensor);
      CHECK(found.independent_passes);
    }
  }
}
