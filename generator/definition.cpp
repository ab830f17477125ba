// A definition's TOML and header, read and checked.
#include "generator/toml_reader.h"
// toml++ before ours: its header is large and wants no macros in front.
#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "generator/generator.h"

namespace kbench::generator {
namespace {

constexpr char kPrivateMarker[] = "// kbench: private from here\n";
const std::vector<std::string> kLanguages = {"cuda", "cpp", "python"}, kDevices = {"cpu", "cuda"};
// The rates of catalog/gpus.toml, and memory.
const std::vector<std::string> kBounds = {"memory", "f64", "f32", "tf32", "bf16", "f16", "fp8", "int8", "fp4"};

Dims read_dims(TomlReader& reader, const toml::table& table, const std::string& key,
               const std::vector<std::string>& names) {
  const auto of = [&](std::string_view name) { return std::string(key).append(".").append(name); };
  Dims dims;
  for (const auto& [name, node] : table) dims[std::string(name.str())] = reader.integer(node, of(name.str()));
  for (const std::string& name : names)
    if (!dims.contains(name)) reader.fault(of(name), "missing", &table);
  for (const auto& [name, value] : dims) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      reader.fault(of(name), "is not in dims.names", &table);
    if (value < 1) reader.fault(of(name), "must be at least 1", &table);
  }
  return dims;
}

std::vector<Shape> read_shapes(TomlReader& reader, const toml::table& table, const char* key, const Problem& problem,
                               bool required = true) {
  std::vector<Shape> shapes;
  for (const toml::table* one : reader.tables(table, "dims.", key, required)) {
    const std::string name = std::string(key) + std::to_string(shapes.size());
    const std::string place = std::string("dims.") + key + "[" + std::to_string(shapes.size()) + "]";
    shapes.push_back({name, read_dims(reader, *one, place, problem.dims)});
  }
  if (required && shapes.empty()) reader.fault(std::string("dims.") + key, "needs at least one shape", &table);
  return shapes;
}

void read_all_dims(TomlReader& reader, const toml::table& root, Definition& definition) {
  Problem& problem = definition.problem;
  const toml::table* table = reader.table(root, "", "dims", true);
  if (table == nullptr) return;
  reader.only(*table, "dims.", {"names", "derived", "tiny", "test", "graded", "odd", "precision"});
  problem.dims = reader.texts(*table, "dims.", "names");
  for (const std::string& text : reader.texts(*table, "dims.", "derived", false)) {
    const auto at = text.find(" = ");
    if (at == std::string::npos)
      reader.fault("dims.derived", "'" + text + "' must read \"NAME = expression\"", table->get("derived"));
    else
      problem.derived.emplace_back(text.substr(0, at), text.substr(at + 3));
  }
  if (const toml::table* tiny = reader.table(*table, "dims.", "tiny", true))
    problem.tiny = {{"tiny", read_dims(reader, *tiny, "dims.tiny", problem.dims)}};
  problem.test = read_shapes(reader, *table, "test", problem);
  problem.graded = read_shapes(reader, *table, "graded", problem);
  definition.precision_shapes = read_shapes(reader, *table, "precision", problem, false);
  if (const toml::table* odd = reader.table(*table, "dims.", "odd", false)) {
    for (const auto& [name, node] : *odd) {
      const std::string key = "dims.odd." + std::string(name.str());
      const toml::array* range = node.as_array();
      if (range == nullptr || range->size() != 2) {
        reader.fault(key, "must be [first, last]", &node);
        continue;
      }
      const std::int64_t first = reader.integer(*range->get(0), key), last = reader.integer(*range->get(1), key);
      if (first < 1 || last < first) reader.fault(key, "must be a range of numbers from 1", &node);
      problem.odd[std::string(name.str())] = {first, last};
    }
  }
}

Tensor read_tensor(TomlReader& reader, const toml::table& table, const std::string& prefix) {
  reader.only(table, prefix, {"name", "role", "dtype", "shape", "placement", "gen", "rule"});
  Tensor tensor{};
  tensor.name = reader.text(table, prefix, "name");
  const std::string role = reader.text(table, prefix, "role");
  if (role == "input")
    tensor.role = Role::input;
  else if (role == "output")
    tensor.role = Role::output;
  else if (role == "inout")
    tensor.role = Role::inout;
  else if (!role.empty())
    reader.fault(prefix + "role", "unknown '" + role + "'; one of input, output, inout", table.get("role"));
  const std::string dtype = reader.text(table, prefix, "dtype");
  if (const auto known = dtype_named(dtype))
    tensor.dtype = *known;
  else if (!dtype.empty())
    reader.fault(prefix + "dtype",
                 "unknown '" + dtype +
                     "'; one of f64, f32, bf16, f16, e4m3, e5m2, e8m0, e2m1x2, i8, u8, u16, i32, u32, i64, u64",
                 table.get("dtype"));
  tensor.shape = reader.texts(table, prefix, "shape");
  const std::string placement = reader.text(table, prefix, "placement", false);
  if (placement == "shard")
    tensor.placement = Placement::shard;
  else if (placement == "replicated")
    tensor.placement = Placement::replicated;
  else if (!placement.empty())
    reader.fault(prefix + "placement", "unknown '" + placement + "'; one of shard, replicated", table.get("placement"));
  tensor.gen = reader.text(table, prefix, "gen", tensor.role != Role::output);
  tensor.rule = reader.text(table, prefix, "rule", tensor.role != Role::input);
  if (tensor.role == Role::output && !tensor.gen.empty())
    reader.fault(prefix + "gen", "an output has none", table.get("gen"));
  if (tensor.role == Role::input && !tensor.rule.empty())
    reader.fault(prefix + "rule", "an input has none", table.get("rule"));
  for (const char* rule : {"elem(", "abs(", "tight("})
    if (tensor.rule.starts_with(rule) && std::isdigit(static_cast<unsigned char>(tensor.rule[std::strlen(rule)])))
      reader.fault(prefix + "rule", "its number is measured: write the name alone", table.get("rule"));
  return tensor;
}

void read_scalars(TomlReader& reader, const toml::table& root, Problem& problem) {
  for (const toml::table* table : reader.tables(root, "", "scalars", false)) {
    const std::string prefix = "scalars[" + std::to_string(problem.scalars.size()) + "].";
    reader.only(*table, prefix, {"name", "type", "value"});
    Scalar scalar{reader.text(*table, prefix, "name"), ScalarType::f32,
                  reader.number(*table, prefix, "value", 0, true)};
    const std::string type = reader.text(*table, prefix, "type");
    if (type == "f64")
      scalar.type = ScalarType::f64;
    else if (type == "i64")
      scalar.type = ScalarType::i64;
    else if (type != "f32" && !type.empty())
      reader.fault(prefix + "type", "unknown '" + type + "'; one of f32, f64, i64", table->get("type"));
    if (scalar.type == ScalarType::i64 && scalar.value != std::floor(scalar.value))
      reader.fault(prefix + "value", "an i64 must be whole", table->get("value"));
    if (scalar.type == ScalarType::f32 && !std::isfinite(static_cast<float>(scalar.value)))
      reader.fault(prefix + "value", "is beyond f32", table->get("value"));
    problem.scalars.push_back(scalar);
  }
}

std::vector<std::string> read_choices(TomlReader& reader, const toml::table& root, const char* key,
                                      const std::vector<std::string>& all) {
  if (root.get(key) == nullptr) return all;
  const std::vector<std::string> chosen = reader.texts(root, "", key);
  for (const std::string& one : chosen)
    if (std::find(all.begin(), all.end(), one) == all.end()) reader.fault(key, "unknown '" + one + "'", root.get(key));
  if (chosen.empty()) reader.fault(key, "needs at least one", root.get(key));
  return chosen;
}

// Whether the rule has a number that must be measured: not exact, codes, or rows of those.
bool has_tolerance(const Tensor& tensor) {
  if (tensor.rule == "exact") return false;
  for (const char* rule : {"codes(", "rows(exact", "rows(equal"})
    if (tensor.rule.starts_with(rule)) return false;
  return true;
}

void read_precision(TomlReader& reader, const toml::table& root, Definition& definition, Tolerances tolerances) {
  const toml::table* table = reader.table(root, "", "precision", false);
  Precision precision;
  if (table != nullptr) {
    precision.conditions = reader.text(*table, "precision.", "conditions");
    for (const auto& [key, node] : *table) {
      const std::string name(key.str()), prefix = "precision." + name + ".";
      if (name == "conditions") continue;
      if (name == "reference_ms" && node.is_array()) {
        for (const toml::node& one : *node.as_array())
          precision.reference_ms.push_back(one.value<double>().value_or(0));
        continue;
      }
      const Tensor* tensor = definition.problem.find(name);
      if (tensor == nullptr || tensor->role == Role::input || !has_tolerance(*tensor)) {
        reader.fault("precision." + name, "no output of that name has a tolerance", &node);
      } else if (const toml::table* one = node.as_table()) {
        reader.only(*one, prefix, {"floor_max", "floor_rms", "control_max", "control_rms", "max", "rms"});
        const auto number = [&](const char* what) { return reader.number(*one, prefix, what, 0, true); };
        precision.tensors[name] = {number("floor_max"),
                                   number("floor_rms"),
                                   number("control_max"),
                                   number("control_rms"),
                                   {number("max"), number("rms")}};
      } else {
        reader.fault("precision." + name, "must be a table", &node);
      }
    }
    definition.precision = precision;
  }
  if (tolerances == Tolerances::to_be_measured) {
    for (Tensor& tensor : definition.problem.tensors)
      if (tensor.role != Role::input && has_tolerance(tensor)) tensor.tolerance = {kUnmeasured, 1};
    return;
  }
  for (Tensor& tensor : definition.problem.tensors) {
    if (tensor.role == Role::input || !has_tolerance(tensor)) continue;
    if (const auto found = precision.tensors.find(tensor.name); found != precision.tensors.end())
      tensor.tolerance = found->second.tolerance;
    else
      reader.fault(
          "precision." + tensor.name,
          "missing: rule '" + tensor.rule + "' has a tolerance, which must be measured (kbench-catalog precision)");
  }
}

// [exceptions] names checks of lint with the reason why they do not hold; [lint] is lint's own record.
void read_lint(TomlReader& reader, const toml::table& root, Definition& definition) {
  if (const toml::table* exceptions = reader.table(root, "", "exceptions", false)) {
    reader.only(
        *exceptions, "exceptions.",
        {"roofline", "memory", "reference_time", "margin", "zeros", "constant", "rank_one", "stale", "input_copy",
         "missing_tile", "last_row", "last_column", "wrong_element", "lower_precision", "truncated"});
    for (const auto& [key, node] : *exceptions)
      definition.exceptions[std::string(key.str())] = reader.text(*exceptions, "exceptions.", key.data());
  }
  if (const toml::table* lint = reader.table(root, "", "lint", false)) {
    reader.only(*lint, "lint.", {"hash", "conditions", "margin"});
    definition.lint = {reader.text(*lint, "lint.", "hash"), reader.text(*lint, "lint.", "conditions"),
                       reader.number(*lint, "lint.", "margin", 0, true)};
  }
}

void read_header(TomlReader& reader, const std::string& text, Definition& definition) {
  const auto marker = text.find(kPrivateMarker);
  definition.header = text;
  definition.public_header = text.substr(0, marker);
  while (definition.public_header.ends_with("\n\n")) definition.public_header.pop_back();
  if (marker == std::string::npos)
    reader.fault("(header)", "lacks the line '// kbench: private from here' between reference and independent");
  const auto has = [&](const std::string& where, const char* function) {
    if (where.find(std::string("inline void ") + function + "(const kbench_args&") == std::string::npos)
      reader.fault("(header)",
                   std::string("lacks 'inline void ") + function + "(const kbench_args& …, kbench_exec& …)'");
  };
  has(definition.public_header, "reference");
  if (marker != std::string::npos) {
    has(text.substr(marker), "independent");
    has(text.substr(marker), "control");
  }
}

std::string sha256(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &length, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available");
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

// All that decides whether a submission is right and how its work is credited. Not the title, the keywords or the
// source.
std::string meaning_hash(const Definition& definition) {
  Problem problem = definition.problem;
  problem.title = problem.hash = "";
  return sha256(to_json(problem) + "\n" + definition.op + "\n" + definition.header);
}

void check_work(TomlReader& reader, const toml::table& work, const Problem& problem) {
  const std::string& bound = problem.work.bound;
  if (!bound.empty() && std::find(kBounds.begin(), kBounds.end(), bound) == kBounds.end()) {
    std::string all;
    for (const std::string& known : kBounds) all += (all.empty() ? "" : ", ") + known;
    reader.fault("work.bound", "unknown '" + bound + "'; one of " + all, work.get("bound"));
  } else if (problem.metric == Metric::gbytes && !bound.empty() && bound != "memory") {
    reader.fault("work.bound", "a task in GB/s is bound by memory", work.get("bound"));
  }
  if (problem.peak_factor < 0) reader.fault("work.peak_factor", "must not be negative", work.get("peak_factor"));
}

void read_rules(TomlReader& reader, const toml::table& root, Problem& problem) {
  const toml::table* rules = reader.table(root, "", "rules", false);
  if (rules == nullptr) return;
  reader.only(*rules, "rules.", {"kernels_max"});
  const toml::node* kernels = rules->get("kernels_max");
  if (kernels == nullptr) return reader.fault("rules.kernels_max", "missing", rules);
  const std::int64_t most = reader.integer(*kernels, "rules.kernels_max");
  if (most < 1 || most > kKernelsMax)
    reader.fault("rules.kernels_max", "must be 1 to " + std::to_string(kKernelsMax), kernels);
  else if (std::find(problem.devices.begin(), problem.devices.end(), "cuda") == problem.devices.end())
    reader.fault("rules.kernels_max", "is of the cuda device, which the task lacks", kernels);
  else
    problem.kernels_max = static_cast<int>(most);
}

Definition read(TomlReader& reader, const std::string& id, const toml::table& root, const std::string& header,
                Tolerances tolerances) {
  Definition definition;
  Problem& problem = definition.problem;
  problem.family = id.substr(0, id.find('/'));
  problem.name = id.substr(id.find('/') + 1);
  reader.only(
      root, "",
      {"title", "version", "metric", "gpus", "op", "distinguishing", "independent", "source", "keywords", "languages",
       "devices", "dims", "work", "rules", "scalars", "tensors", "exceptions", "precision", "lint"});
  problem.title = reader.text(root, "", "title");
  problem.version = reader.text(root, "", "version");
  definition.op = reader.text(root, "", "op");
  definition.distinguishing = reader.text(root, "", "distinguishing");
  definition.independent = reader.text(root, "", "independent");
  definition.source = reader.text(root, "", "source");
  definition.keywords = reader.texts(root, "", "keywords");
  problem.languages = read_choices(reader, root, "languages", kLanguages);
  problem.devices = read_choices(reader, root, "devices", kDevices);
  const std::string metric = reader.text(root, "", "metric");
  problem.metric = metric == "TFLOP/s" ? Metric::tflops : Metric::gbytes;
  if (metric != "TFLOP/s" && metric != "GB/s" && !metric.empty())
    reader.fault("metric", "unknown '" + metric + "'; one of TFLOP/s, GB/s", root.get("metric"));
  problem.gpus = root.get("gpus") == nullptr ? 1 : static_cast<int>(reader.integer(*root.get("gpus"), "gpus"));
  if (problem.gpus < 1 || problem.gpus > 8) reader.fault("gpus", "must be 1 to 8", root.get("gpus"));
  read_all_dims(reader, root, definition);
  if (const toml::table* work = reader.table(root, "", "work", true)) {
    reader.only(*work, "work.", {"flops", "bytes", "bound", "peak_factor"});
    problem.work = {reader.text(*work, "work.", "flops"), reader.text(*work, "work.", "bytes"),
                    reader.text(*work, "work.", "bound")};
    problem.peak_factor = reader.number(*work, "work.", "peak_factor", 1, false);
    check_work(reader, *work, problem);
  }
  read_rules(reader, root, problem);
  read_scalars(reader, root, problem);
  for (const toml::table* table : reader.tables(root, "", "tensors", true))
    problem.tensors.push_back(read_tensor(reader, *table, "tensors[" + std::to_string(problem.tensors.size()) + "]."));
  read_precision(reader, root, definition, tolerances);
  read_lint(reader, root, definition);
  read_header(reader, header, definition);
  return definition;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw BadDefinition(path.string() + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Definition parse(const std::string& id, const std::string& file, const std::string& toml_text,
                 const std::string& header, Tolerances tolerances) {
  TomlReader reader(file);
  toml::table root;
  try {
    root = toml::parse(toml_text, file);
  } catch (const toml::parse_error& error) {
    throw BadDefinition(file + ":" + std::to_string(error.source().begin.line) +
                        ": (syntax): " + std::string(error.description()));
  } catch (const ParserConfused& error) {
    throw BadDefinition(file + ": (syntax): " + error.what());
  }
  Definition definition = read(reader, id, root, header, tolerances);
  std::vector<std::string> faults = reader.faults();
  if (faults.empty())
    for (const std::string& fault : faults_of(definition.problem))
      faults.push_back(std::string(file).append(": ").append(fault));
  if (!faults.empty()) {
    std::string all;
    for (const std::string& fault : faults) all += (all.empty() ? "" : "\n") + fault;
    throw BadDefinition(all);
  }
  for (std::vector<Shape>* shapes : {&definition.problem.tiny, &definition.problem.test, &definition.problem.graded})
    for (Shape& shape : *shapes) shape = definition.problem.with_derived(shape);
  definition.problem.hash = meaning_hash(definition);
  return definition;
}

Definition load(const std::string& root, const std::string& id, Tolerances tolerances) {
  const std::string base = "catalog/" + id;
  const std::filesystem::path folder(root);
  return parse(id, base + ".toml", read_file(folder / (base + ".toml")), read_file(folder / (base + ".h")), tolerances);
}

std::vector<std::string> find(const std::string& root, const std::vector<std::string>& names) {
  namespace fs = std::filesystem;
  std::vector<std::string> all, found;
  const fs::path folder = fs::path(root) / "catalog";
  if (!fs::is_directory(folder)) throw BadDefinition(folder.string() + ": no such folder");
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path path = entry.path().lexically_relative(folder);
    if (path.extension() == ".toml" && std::distance(path.begin(), path.end()) == 2)
      all.push_back((path.parent_path() / path.stem()).string());
  }
  std::sort(all.begin(), all.end());
  if (names.empty()) return all;
  for (const std::string& name : names) {
    std::vector<std::string> matches;
    for (const std::string& id : all)
      if (id == name || id.substr(id.find('/') + 1) == name) matches.push_back(id);
    if (matches.empty()) throw BadDefinition(name + ": no such task under " + folder.string());
    if (matches.size() > 1) throw BadDefinition(name + ": in several families; write family/task");
    found.push_back(matches[0]);
  }
  return found;
}

}  // namespace kbench::generator
