// Reads task.json, collecting every fault before it throws.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "verifier/problem/json_object.h"
#include "verifier/problem/problem.h"

namespace kbench {
namespace {

using nlohmann::json;

template <class Enum, std::size_t n>
std::optional<Enum> named(const std::string_view (&names)[n], std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

bool is_identifier(std::string_view name) {
  if (name.empty() || name.size() > kNameMax || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}
bool is_slug(std::string_view name) {
  if (name.empty() || name.size() > kNameMax || name[0] == '-') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::string numbered(std::string_view key, std::size_t i) { return std::string(key) + "[" + std::to_string(i) + "]"; }

Scalar read_scalar(Object&& object) {
  Scalar scalar{object.text("name"), ScalarType::f32, object.number("value", 0, true)};
  const std::string type = object.text("type");
  if (const auto known = named<ScalarType>(kScalarNames, type))
    scalar.type = *known;
  else if (!type.empty())
    object.note("type", "'" + type + "' is none of f32, f64, i64");
  const bool whole = scalar.value == std::floor(scalar.value) && std::fabs(scalar.value) <= 9007199254740992.0;
  if (scalar.type == ScalarType::i64 && !whole) object.note("value", "must be whole and at most 2^53");
  object.refuse_unknown_keys();
  return scalar;
}

Tolerance read_tolerance(Object& tensor) {
  Tolerance tolerance;
  const json* value = tensor.get("tolerance", false);
  if (value == nullptr) return tolerance;
  Object object(*value, tensor.path("tolerance"), tensor.faults());
  tolerance = {object.number("max", 0, true), object.number("rms", 0, false)};
  if (tolerance.max < 0) object.note("max", "must not be negative");
  if (tolerance.rms < 0) object.note("rms", "must not be negative");
  object.refuse_unknown_keys();
  return tolerance;
}

// The last two words alone: of a task on one GPU nothing is said.
Placement read_placement(Object& object) {
  const std::string text = object.text("placement", false);
  const auto known = named<Placement>(kPlacementNames, text);
  if (known && *known != Placement::one) return *known;
  if (!text.empty()) object.note("placement", "'" + text + "' is none of shard, replicated");
  return Placement::one;
}

Tensor read_tensor(Object&& object) {
  Tensor tensor{};
  tensor.name = object.text("name");
  const std::string dtype = object.text("dtype"), role = object.text("role");
  if (const auto known = dtype_named(dtype))
    tensor.dtype = *known;
  else if (!dtype.empty())
    object.note("dtype", "unknown dtype '" + dtype + "'");
  for (const json& extent : object.array("shape", kTensorRankMax)) {
    if (extent.is_string())
      tensor.shape.push_back(extent);
    else if (extent.is_number_integer())
      tensor.shape.push_back(std::to_string(extent.get<std::int64_t>()));
    else
      object.note("shape", "must hold expressions or whole numbers");
  }
  tensor.gen = object.text("gen", false);
  tensor.rule = object.text("rule", false);
  tensor.tolerance = read_tolerance(object);
  tensor.placement = read_placement(object);
  if (const auto known = named<Role>(kRoleNames, role)) {
    tensor.role = *known;
    const bool made = tensor.role != Role::output, judged = tensor.role != Role::input;
    if (made == tensor.gen.empty()) object.note("gen", made ? "is missing: every input has one" : "an output has none");
    if (judged == tensor.rule.empty())
      object.note("rule", judged ? "is missing: every output has one" : "an input has none");
  } else if (!role.empty()) {
    object.note("role", "'" + role + "' is none of input, output, inout");
  }
  object.refuse_unknown_keys();
  return tensor;
}

Dims read_dims(Object& shape, const Problem& problem) {
  Dims dims;
  const json* value = shape.get("dims");
  if (value == nullptr) return dims;
  Object object(*value, shape.path("dims"), shape.faults());
  for (const std::string& name : problem.dims) {
    const json* extent = object.get(name);
    if (extent == nullptr) continue;
    if (!extent->is_number_integer() || extent->get<double>() < 1 || extent->get<double>() > 9.2e18) {
      object.note(name, "must be a whole number of at least 1");
    } else {
      dims[name] = extent->get<std::int64_t>();
    }
  }
  object.refuse_unknown_keys();
  return dims;
}

// Faults that show only at numbers: extents, sizes and work at one shape.
void check_at(const Problem& problem, const Dims& dims, const std::string& where, Faults& faults) {
  const auto attempt = [&](const std::string& what, auto&& check) {
    try {
      check();
    } catch (const BadExpression& fault) {
      faults.push_back(what + ": " + fault.what() + ", for " + where);
    }
  };
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    attempt(numbered("tensors", i) + ".shape", [&] {
      if (problem.bytes(problem.tensors[i], dims) > kTensorBytesMax) {
        throw BadExpression("more than " + std::to_string(kTensorBytesMax) + " bytes");
      }
    });
  }
  const auto non_negative = [&](const std::string& expression) {
    if (evaluate(expression, dims) < 0) throw BadExpression("'" + expression + "': negative");
  };
  attempt("work.flops", [&] { non_negative(problem.work.flops); });
  attempt("work.bytes", [&] { non_negative(problem.work.bytes); });
  attempt("work", [&] {
    if (problem.credited(dims) == 0) throw BadExpression("the metric's work is 0");
  });
}

Shape read_shape(Object&& object, const Problem& problem) {
  Shape shape{object.text("name"), {}};
  const std::size_t before = object.faults().size();
  shape.dims = read_dims(object, problem);
  object.refuse_unknown_keys();
  if (object.faults().size() != before) return shape;
  try {
    shape = problem.with_derived(std::move(shape));
  } catch (const BadExpression& fault) {
    object.note("dims", std::string("derived: ") + fault.what());
    return shape;
  }
  check_at(problem, shape.dims, object.path(""), object.faults());
  return shape;
}

std::vector<Shape> read_shapes(Object& root, std::string_view key, const Problem& problem) {
  std::vector<Shape> shapes;
  std::set<std::string> names;
  const std::vector<json> values = root.array(key, kShapesMax);
  for (std::size_t i = 0; i < values.size(); ++i) {
    shapes.push_back(read_shape(Object(values[i], numbered(key, i), root.faults()), problem));
    if (!names.insert(shapes.back().name).second)
      root.note(numbered(key, i) + ".name", "'" + shapes.back().name + "' occurs twice");
  }
  return shapes;
}

void read_odd(Object& root, Problem& problem) {
  const json* value = root.get("odd", false);
  if (value == nullptr) return;
  Object object(*value, "odd", root.faults());
  const std::size_t before = root.faults().size();
  for (const std::string& name : problem.dims) {
    const json* range = object.get(name, false);
    if (range == nullptr) continue;
    const bool two =
        range->is_array() && range->size() == 2 && range->at(0).is_number_integer() && range->at(1).is_number_integer();
    if (!two || range->at(0).get<std::int64_t>() < 1 ||
        range->at(1).get<std::int64_t>() < range->at(0).get<std::int64_t>()) {
      object.note(name, "must be [least, most], whole, 1 <= least <= most");
    } else {
      problem.odd[name] = {range->at(0).get<std::int64_t>(), range->at(1).get<std::int64_t>()};
    }
  }
  object.refuse_unknown_keys();
  const bool ready = !problem.test.empty() && problem.test[0].dims.size() == problem.argument_dims().size();
  if (root.faults().size() != before || !ready || problem.odd.empty()) return;
  for (const bool least : {true, false}) {
    Shape shape = problem.test[0];
    for (const auto& [name, range] : problem.odd) shape.dims[name] = least ? range.first : range.second;
    try {
      check_at(problem, problem.with_derived(shape).dims, least ? "the least odd dims" : "the largest odd dims",
               root.faults());
    } catch (const BadExpression& fault) {
      root.note("odd", fault.what());
    }
  }
}

void read_derived(Object& root, Problem& problem) {
  const std::vector<json> values = root.array("derived", kDimsMax, false);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Object object(values[i], numbered("derived", i), root.faults());
    problem.derived.emplace_back(object.text("name"), object.text("expression"));
    object.refuse_unknown_keys();
  }
  if (problem.dims.size() + problem.derived.size() > kDimsMax)
    root.note("dims", "more than " + std::to_string(kDimsMax) + " with the derived ones");
}

void read_arguments(Object& root, Problem& problem) {
  problem.dims = root.texts("dims", kDimsMax);
  read_derived(root, problem);
  const std::vector<json> scalars = root.array("scalars", kScalarsMax, false),
                          tensors = root.array("tensors", kTensorsMax);
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    problem.scalars.push_back(read_scalar(Object(scalars[i], numbered("scalars", i), root.faults())));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    problem.tensors.push_back(read_tensor(Object(tensors[i], numbered("tensors", i), root.faults())));
  }
  std::set<std::string> taken;
  const auto take = [&](const std::string& where, const std::string& name) {
    if (!is_identifier(name))
      root.note(where, "'" + name + "' is no identifier of at most " + std::to_string(kNameMax) + " characters");
    else if (!taken.insert(name).second)
      root.note(where, "'" + name + "' occurs twice");
  };
  for (std::size_t i = 0; i < problem.dims.size(); ++i) take(numbered("dims", i), problem.dims[i]);
  for (std::size_t i = 0; i < problem.derived.size(); ++i)
    take(numbered("derived", i) + ".name", problem.derived[i].first);
  for (std::size_t i = 0; i < problem.scalars.size(); ++i)
    take(numbered("scalars", i) + ".name", problem.scalars[i].name);
  bool outputs = false, any_judged = false;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    take(numbered("tensors", i) + ".name", problem.tensors[i].name);
    const Role role = problem.tensors[i].role;
    if (outputs && role != Role::output)
      root.note(numbered("tensors", i), "inputs and in-out tensors come before the outputs");
    outputs = outputs || role == Role::output;
    any_judged = any_judged || role != Role::input;
  }
  if (!any_judged) root.note("tensors", "no output");
}

// Tensors and GPUs fit together, and what one GPU alone can have is not asked of several.
void check_gpus(Object& root, const Problem& problem) {
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const bool placed = problem.tensors[i].placement != Placement::one;
    if (problem.gpus > 1 && !placed)
      root.note(numbered("tensors", i) + ".placement",
                "is missing: the task has " + std::to_string(problem.gpus) + " GPUs; one of shard, replicated");
    if (problem.gpus == 1 && placed)
      root.note(numbered("tensors", i) + ".placement", "is of tasks on several GPUs: gpus is 1");
  }
  if (problem.tensors.size() * static_cast<std::size_t>(std::max(problem.gpus, 1)) > kTensorsMax)
    root.note("tensors", "more than " + std::to_string(kTensorsMax) + ", each counted once a GPU");
  if (problem.gpus > 1 && problem.kernels_max > 0)
    root.note("rules.kernels_max", "is not of tasks on several GPUs: kernels are counted on one");
}

// What a submission must keep to besides being right.
void read_rules(Object& root, Problem& problem) {
  const json* value = root.get("rules", false);
  if (value == nullptr) return;
  Object object(*value, "rules", root.faults());
  const double kernels = object.number("kernels_max", 1, true);
  if (kernels >= 1 && kernels <= kKernelsMax && kernels == std::floor(kernels))
    problem.kernels_max = static_cast<int>(kernels);
  else
    object.note("kernels_max", "must be a whole number from 1 to " + std::to_string(kKernelsMax));
  object.refuse_unknown_keys();
}

void read_choices(Object& root, std::string_view key, const std::set<std::string>& admitted,
                  std::vector<std::string>& to) {
  to = root.texts(key, admitted.size());
  if (to.empty()) root.note(key, "names none");
  for (const std::string& choice : to) {
    if (!admitted.contains(choice)) root.note(key, "'" + choice + "' is not known");
  }
}

Problem read_problem(const json& value, Faults& faults) {
  Problem problem;
  Object root(value, "", faults);
  problem.family = root.text("family");
  problem.name = root.text("name");
  problem.title = root.text("title");
  problem.version = root.text("version");
  problem.hash = root.text("hash", false);
  if (!is_slug(problem.family)) root.note("family", "must be of a-z, 0-9 and -");
  if (!is_slug(problem.name)) root.note("name", "must be of a-z, 0-9 and -");
  if (value.contains("version") && problem.version.empty()) root.note("version", "must not be empty");
  const double gpus = root.number("gpus", 1, false);
  problem.gpus = gpus >= 1 && gpus <= kGpusMax && gpus == std::floor(gpus) ? static_cast<int>(gpus) : 0;
  if (problem.gpus == 0) root.note("gpus", "must be 1 to " + std::to_string(kGpusMax));
  const std::string metric = root.text("metric");
  problem.metric = named<Metric>(kMetricNames, metric).value_or(Metric::gbytes);
  if (!metric.empty() && !named<Metric>(kMetricNames, metric))
    root.note("metric", "'" + metric + "' is neither TFLOP/s nor GB/s");
  problem.peak_factor = root.number("peak_factor", 1, false);
  if (problem.peak_factor < 0) root.note("peak_factor", "must not be negative");
  read_rules(root, problem);
  if (const json* work = root.get("work")) {
    Object object(*work, "work", faults);
    problem.work = {object.text("flops"), object.text("bytes"), object.text("bound")};
    object.refuse_unknown_keys();
  }
  read_arguments(root, problem);
  check_gpus(root, problem);
  read_choices(root, "languages", {"cuda", "cpp", "python"}, problem.languages);
  read_choices(root, "devices", {"cpu", "cuda"}, problem.devices);
  problem.tiny = read_shapes(root, "tiny", problem);
  problem.test = read_shapes(root, "test", problem);
  problem.graded = read_shapes(root, "graded", problem);
  if (problem.tiny.size() != 1) root.note("tiny", "must hold one shape");
  if (problem.test.empty()) root.note("test", "must hold a shape");
  const bool on_gpu = std::find(problem.devices.begin(), problem.devices.end(), "cuda") != problem.devices.end();
  if (!on_gpu && problem.kernels_max > 0) root.note("rules.kernels_max", "is of the cuda device, which the task lacks");
  if (on_gpu && problem.graded.empty()) root.note("graded", "must hold a shape, since the task runs on cuda");
  read_odd(root, problem);
  root.refuse_unknown_keys();
  return problem;
}

[[noreturn]] void refuse(const Faults& faults) {
  std::string text;
  for (const std::string& fault : faults) text += (text.empty() ? "" : "\n") + fault;
  throw BadProblem(text);
}

}  // namespace

Problem problem_from_json(std::string_view text) {
  if (text.size() > kProblemBytesMax) throw BadProblem("longer than " + std::to_string(kProblemBytesMax) + " bytes");
  // A definition has four levels. Copies of a value go as deep as it does, on the stack.
  constexpr int kDepthMax = 8;
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    if (depth > kDepthMax) throw BadProblem("nested deeper than " + std::to_string(kDepthMax) + " levels");
    return true;
  };
  json value;
  try {
    value = json::parse(text, shallow);
  } catch (const json::exception& fault) {
    throw BadProblem(std::string("not JSON: ") + fault.what());
  }
  Faults faults;
  Problem problem = read_problem(value, faults);
  if (!faults.empty()) refuse(faults);
  return problem;
}

Problem load_problem(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) throw BadProblem(path + ": cannot be opened");
  std::string text(kProblemBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) throw BadProblem(path + ": cannot be read");
  try {
    return problem_from_json(text);
  } catch (const BadProblem& fault) {
    throw BadProblem(path + ":\n" + fault.what());
  }
}

}  // namespace kbench
