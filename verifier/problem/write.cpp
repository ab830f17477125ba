// The same bytes for the same problem: keys in a fixed order, shapes without their derived dims.
#include <nlohmann/json.hpp>

#include "verifier/problem/json_object.h"
#include "verifier/problem/problem.h"

namespace kbench {
namespace {

using nlohmann::ordered_json;

ordered_json shapes_json(const std::vector<Shape>& shapes, const Problem& problem) {
  ordered_json result = ordered_json::array();
  for (const Shape& shape : shapes) {
    ordered_json dims = ordered_json::object();
    for (const std::string& name : problem.dims) dims[name] = shape.dims.at(name);
    result.push_back({{"name", shape.name}, {"dims", dims}});
  }
  return result;
}

ordered_json tensor_json(const Tensor& tensor) {
  ordered_json result = {{"name", tensor.name},
                         {"dtype", name_of(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"role", kRoleNames[static_cast<std::size_t>(tensor.role)]}};
  if (tensor.placement != Placement::one)
    result["placement"] = kPlacementNames[static_cast<std::size_t>(tensor.placement)];
  if (!tensor.gen.empty()) result["gen"] = tensor.gen;
  if (tensor.rule.empty()) return result;
  result["rule"] = tensor.rule;
  result["tolerance"] = {{"max", tensor.tolerance.max}, {"rms", tensor.tolerance.rms}};
  return result;
}

}  // namespace

std::string to_json(const Problem& problem) {
  ordered_json derived = ordered_json::array(), scalars = ordered_json::array(), tensors = ordered_json::array();
  for (const auto& [name, expression] : problem.derived)
    derived.push_back({{"name", name}, {"expression", expression}});
  for (const Scalar& scalar : problem.scalars) {
    scalars.push_back({{"name", scalar.name},
                       {"type", kScalarNames[static_cast<std::size_t>(scalar.type)]},
                       {"value", scalar.value}});
  }
  for (const Tensor& tensor : problem.tensors) tensors.push_back(tensor_json(tensor));
  ordered_json odd = ordered_json::object();
  for (const auto& [name, range] : problem.odd) odd[name] = {range.first, range.second};
  ordered_json result = {
      {"family", problem.family},
      {"name", problem.name},
      {"title", problem.title},
      {"version", problem.version},
      {"hash", problem.hash},
      {"gpus", problem.gpus},
      {"metric", kMetricNames[static_cast<std::size_t>(problem.metric)]},
      {"dims", problem.dims},
      {"derived", derived},
      {"scalars", scalars},
      {"tensors", tensors},
      {"work", {{"flops", problem.work.flops}, {"bytes", problem.work.bytes}, {"bound", problem.work.bound}}},
      {"peak_factor", problem.peak_factor},
      {"tiny", shapes_json(problem.tiny, problem)},
      {"test", shapes_json(problem.test, problem)},
      {"graded", shapes_json(problem.graded, problem)},
      {"odd", odd},
      {"languages", problem.languages},
      {"devices", problem.devices}};
  // Left out where there is none: a task without rules means what it meant before there were any.
  if (problem.kernels_max > 0) result["rules"] = {{"kernels_max", problem.kernels_max}};
  return result.dump(1) + "\n";
}

}  // namespace kbench
