// CATALOG.json: what a list of tasks needs to know of each, and how long an ideal kernel would take on the GPUs of
// catalog/gpus.toml.
#include "toml/toml.h"
// toml++ first, see definition.cpp.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "generator/generator.h"

namespace kbench::generator {
namespace {

using nlohmann::ordered_json;

struct Gpu {
  std::string model;
  double bytes_per_us = 0;
  std::map<std::string, double> flops_per_us;  // by what a task's work is bound by
};

std::vector<Gpu> read_gpus(const std::string& root) {
  const std::string file = root + "/catalog/gpus.toml";
  std::vector<Gpu> gpus;
  try {
    const toml::table table = toml::parse_file(file);
    const toml::array* families = table["gpu"].as_array();
    for (std::size_t i = 0; families != nullptr && i < families->size(); ++i) {
      const auto family = toml::node_view<const toml::node>(families->get(i));
      const toml::table* clocks = family["clocks"].as_table();
      const toml::table* rates = family["rates"].as_table();
      if (clocks == nullptr || rates == nullptr) continue;
      for (const auto& [model, values] : *clocks) {
        const auto clock = [&, at = toml::node_view<const toml::node>(&values)](std::size_t n) {
          return at[n].value<double>().value_or(0);
        };
        Gpu gpu{std::string(model.str()), 0, {}};
        const double transfers = family["transfers_per_clock"].value<double>().value_or(0);
        gpu.bytes_per_us = family["bus_bits"][model.str()].value<double>().value_or(0) / 8 * transfers * clock(2);
        for (const auto& [kind, rate] : *rates)
          gpu.flops_per_us[std::string(kind.str())] = rate.value<double>().value_or(0) * clock(0) * clock(1);
        gpus.push_back(gpu);
      }
    }
  } catch (const toml::parse_error& error) {
    throw BadDefinition(file + ":" + std::to_string(error.source().begin.line) + ": " +
                        std::string(error.description()));
  } catch (const ParserConfused& error) {
    throw BadDefinition(file + ": " + error.what());
  }
  return gpus;
}

// The time no kernel can beat, in us to a tenth: the credited bytes at the memory's speed and the credited operations
// at that of the unit which they are bound by, whichever is longer.
std::vector<double> roofline(const Problem& problem, const Gpu& gpu) {
  std::vector<double> times;
  for (const Shape& shape : problem.graded) {
    double us = static_cast<double>(evaluate(problem.work.bytes, shape.dims)) / gpu.bytes_per_us;
    if (const auto rate = gpu.flops_per_us.find(problem.work.bound); rate != gpu.flops_per_us.end())
      us = std::max(us, static_cast<double>(evaluate(problem.work.flops, shape.dims)) / rate->second);
    times.push_back(std::round(us * 10) / 10);
  }
  return times;
}

ordered_json shapes_json(const std::vector<Shape>& shapes) {
  ordered_json out = ordered_json::array();
  for (const Shape& shape : shapes) out.push_back(shape.dims);
  return out;
}

ordered_json entry(const Definition& definition, const std::vector<Gpu>& gpus) {
  const Problem& problem = definition.problem;
  ordered_json outputs = ordered_json::array(), rooflines = ordered_json::object();
  for (const Tensor& tensor : problem.tensors)
    if (tensor.role != Role::input)
      outputs.push_back({{"name", tensor.name},
                         {"dtype", name_of(tensor.dtype)},
                         {"rule", tensor.rule},
                         {"tolerance", {{"max", tensor.tolerance.max}, {"rms", tensor.tolerance.rms}}}});
  const auto& devices = problem.devices;
  if (std::find(devices.begin(), devices.end(), "cuda") != devices.end())
    for (const Gpu& gpu : gpus) rooflines[gpu.model] = roofline(problem, gpu);
  ordered_json result = {{"task", definition.id()},
                         {"title", problem.title},
                         {"version", problem.version},
                         {"hash", problem.hash},
                         {"metric", problem.metric == Metric::tflops ? "TFLOP/s" : "GB/s"},
                         {"gpus", problem.gpus},
                         {"bound", problem.work.bound},
                         {"devices", devices},
                         {"languages", problem.languages},
                         {"keywords", definition.keywords},
                         {"dims", {{"test", shapes_json(problem.test)}, {"graded", shapes_json(problem.graded)}}},
                         {"outputs", outputs},
                         {"roofline_us", rooflines}};
  if (problem.kernels_max > 0) result["rules"] = {{"kernels_max", problem.kernels_max}};
  return result;
}

}  // namespace

std::map<std::string, std::vector<double>> rooflines(const std::string& root, const Problem& problem) {
  std::map<std::string, std::vector<double>> times;
  for (const Gpu& gpu : read_gpus(root)) times[gpu.model] = roofline(problem, gpu);
  return times;
}

std::string catalog_json(const std::string& root, const std::vector<Definition>& definitions) {
  const std::vector<Gpu> gpus = read_gpus(root);
  ordered_json tasks = ordered_json::array();
  for (const Definition& definition : definitions) tasks.push_back(entry(definition, gpus));
  return ordered_json{{"tasks", tasks}}.dump(1) + "\n";
}

}  // namespace kbench::generator
