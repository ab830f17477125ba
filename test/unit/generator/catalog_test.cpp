// Every task in catalog/: its folder is what the generator makes of it, its independent implementation agrees with its
// reference by the task's own rules, its control does not; also at the least and the largest odd sizes.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "generator/bench.h"

using namespace kbench;
using namespace kbench::generator;

namespace {

constexpr unsigned kThreads = 2;

std::vector<Shape> odd_ends(const Problem& problem) {
  std::vector<Shape> shapes;
  for (const bool least : {true, false}) {
    Shape shape{least ? "least odd" : "largest odd", {}};
    for (const std::string& dim : problem.dims) shape.dims[dim] = problem.test[0].dims.at(dim);
    for (const auto& [dim, range] : problem.odd) shape.dims[dim] = least ? range.first : range.second;
    if (!problem.odd.empty()) shapes.push_back(shape);
  }
  return shapes;
}

// What is wrong with a task, a line each.
std::string faults_of_task(const std::string& id) {
  const std::unique_ptr<verify::Device> device = verify::open_cpu_device();
  const Definition definition = load(".", id);
  const Problem problem = spread(definition.problem);
  const Author author(".", definition, false, {"-O1"});
  std::string faults;
  bool control_fails = false;
  for (const auto& [tensor, found] : differences(*device, problem, author, problem.tiny, {11, 12, 13})) {
    if (!found.independent_passes) faults += tensor + ", tiny: independent differs from reference\n";
    control_fails = control_fails || !found.control_passes;
  }
  if (!control_fails) faults += "the control passes\n";
  for (const Shape& shape : odd_ends(definition.problem))
    for (const auto& [tensor, found] : differences(*device, problem, author, {shape}, {21}))
      if (!found.independent_passes) faults += tensor + ", " + shape.name + ": independent differs from reference\n";
  return faults;
}

}  // namespace

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

TEST_CASE("a megakernel is one kernel") {
  for (const std::string& id : find(".", {})) {
    if (!id.starts_with("megakernel/")) continue;
    INFO(id);
    CHECK(load(".", id).problem.kernels_max == 1);
  }
}

TEST_CASE("in every task the independent implementation passes and the control fails") {
  const std::vector<std::string> ids = find(".", {});
  std::vector<std::string> faults(ids.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < ids.size();) {
      try {
        faults[i] = faults_of_task(ids[i]);
      } catch (const std::exception& error) {
        faults[i] = error.what();
      }
    }
  };
  std::vector<std::thread> others;
  for (unsigned n = 1; n < kThreads; ++n) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    INFO(ids[i] << ": " << faults[i]);
    CHECK(faults[i].empty());
  }
}
