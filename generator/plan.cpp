// The plan: what is to be written, one JSON object a line, one file a family. A definition's beginning from a line of
// it, and how much of it is done.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "generator/generator.h"
#include "generator/render.h"

namespace kbench::generator {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;  // dims stand in the order of the plan

constexpr std::size_t kWrapped = 150;  // columns of an op's text

// A TOML string on one line. TOML's escapes are those of JSON.
std::string quoted(const std::string& text) { return json(text).dump(); }
std::string quoted(const json& value) { return quoted(value.is_string() ? value.get<std::string>() : value.dump()); }

std::string quoted_list(const json& values) {
  std::vector<std::string> parts;
  for (const json& value : values) parts.push_back(quoted(value));
  return "[" + join(parts, ", ") + "]";
}

std::string wrapped(const std::string& text) {
  std::string out, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWrapped) out += line + "\n", line.clear();
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

// Within a multi-line basic string.
std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string table(const json& dims, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names)
    parts.push_back(name + " = " + std::to_string(dims.at(name).get<std::int64_t>()));
  return "{ " + join(parts, ", ") + " }";
}

std::string tables(const json& all, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const json& dims : all) parts.push_back(table(dims, names));
  return "[" + join(parts, ", ") + "]";
}

// placed: of a task on several GPUs. An output is another on each where the plan does not say.
std::string tensor_text(const json& tensor, const char* role, const std::string& rule, bool placed) {
  std::string text = "\n[[tensors]]\nname = " + quoted(tensor.at("name")) + "\nrole = \"" + role +
                     "\"\ndtype = " + quoted(tensor.at("dtype")) + "\nshape = " + quoted_list(tensor.at("shape")) +
                     "\n";
  if (tensor.contains("gen")) text += "gen = " + quoted(tensor.at("gen")) + "\n";
  if (!rule.empty()) text += "rule = " + quoted(rule) + "\n";
  if (placed) text += "placement = " + quoted(tensor.value("place", "shard")) + "\n";
  return text;
}

std::string tensors_text(const json& task) {
  std::map<std::string, std::string> rules;
  std::set<std::string> both;
  for (const json& output : task.at("outputs")) rules[output.at("name")] = output.at("rule");
  const bool placed = task.at("gpus") != 1;
  std::string text;
  for (const json& input : task.at("inputs")) {
    const auto rule = rules.find(input.at("name").get<std::string>());
    text +=
        tensor_text(input, rule == rules.end() ? "input" : "inout", rule == rules.end() ? "" : rule->second, placed);
    if (rule != rules.end()) both.insert(rule->first);
  }
  for (const json& output : task.at("outputs"))
    if (!both.contains(output.at("name").get<std::string>()))
      text += tensor_text(output, "output", output.at("rule"), placed);
  return text;
}

std::string scalars_text(const json& task) {
  std::string text;
  for (const json& scalar : task.at("scalars")) {
    const std::string type = scalar.at("type") == "i32" ? "i64" : scalar.at("type");
    text += "\n[[scalars]]\nname = " + quoted(scalar.at("name")) + "\ntype = \"" + type +
            "\"\nvalue = " + scalar.at("value").dump() + "\n";
  }
  return text;
}

std::string rules_text(const json& task) {
  if (!task.contains("rules")) return "";
  return "\n[rules]\nkernels_max = " + task.at("rules").at("kernels_max").dump() + "\n";
}

std::string definition_text(const json& task, const std::string& odd) {
  std::vector<std::string> names;
  for (const auto& [name, value] : task.at("dims").at("tiny").items()) names.push_back(name);
  const auto text = [&](const char* key) { return std::string(key) + " = " + quoted(task.at(key)) + "\n"; };
  const int gpus = task.at("gpus");
  return text("title") + "version = \"1\"\n" + text("metric") +
         (gpus == 1 ? "" : "gpus = " + std::to_string(gpus) + "\n") + "op = \"\"\"\n" +
         escaped(wrapped(task.at("op"))) + "\"\"\"\n" + text("distinguishing") + text("independent") + text("source") +
         "keywords = " + quoted_list(task.at("keywords")) + "\n\n[dims]\nnames = " + quoted_list(json(names)) +
         "\ntiny = " + table(task.at("dims").at("tiny"), names) +
         "\ntest = " + tables(task.at("dims").at("test"), names) +
         "\ngraded = " + tables(task.at("dims").at("graded"), names) + "\n" + odd +
         "\n[work]\nflops = " + quoted(task.at("flops")) + "\nbytes = " + quoted(task.at("bytes")) +
         "\nbound = " + quoted(task.at("bound")) + "\n" + rules_text(task) + scalars_text(task) + tensors_text(task);
}

std::string header_text(const std::string& title) {
  const auto function = [](const char* name) {
    return std::string("inline void ") + name +
           "(const kbench_args& a, kbench_exec& exec) {\n"
           "  kb::parallel_for(\n      exec, 1, KB_LAMBDA(long long i) { (void)i, (void)a; });\n}\n";
  };
  return "// " + title + ".\n#pragma once\n\n#include \"kbench/parallel.h\"\n#include \"task.h\"\n\n" +
         function("reference") + "\n// kbench: private from here\n\n" + function("independent") + "\n" +
         function("control");
}

// The first dimension that differs between the graded sizes, from 1 to a quarter above its test size, if every
// expression and generator bears that.
std::string odd_line(const Planned& planned, const json& task) {
  const json &graded = task.at("dims").at("graded"), &test = task.at("dims").at("test").at(0);
  for (const auto& [name, value] : graded.front().items()) {
    if (value == graded.back().at(name)) continue;
    const std::int64_t most = test.at(name).get<std::int64_t>() * 5 / 4;
    const std::string line = "odd = { " + name + " = [1, " + std::to_string(most) + "] }\n";
    try {
      json trial = task;
      for (const std::int64_t size : {std::int64_t{1}, most}) {
        trial["dims"]["tiny"] = test;
        trial["dims"]["tiny"][name] = size;
        (void)parse(planned.family + "/" + planned.task, "", definition_text(trial, ""), header_text(""),
                    Tolerances::to_be_measured);
      }
      return line;
    } catch (const BadDefinition&) {
      continue;
    }
  }
  return "";
}

json parsed(const Planned& planned) {
  try {
    return json::parse(planned.text);
  } catch (const json::exception& error) {
    throw BadDefinition(planned.place + ": " + error.what());
  }
}

}  // namespace

std::vector<Planned> read_plan(const std::string& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back(path);
  }
  std::vector<Planned> plan;
  for (const fs::path& name : files) {
    std::ifstream file(name);
    if (!file) throw BadDefinition(name.string() + ": cannot be read");
    int line = 0;
    for (std::string text; std::getline(file, text);) {
      Planned planned{name.string() + ":" + std::to_string(++line), "", "", "", text};
      if (text.empty()) continue;
      try {
        const json task = parsed(planned);
        planned.family = task.at("family");
        planned.task = task.at("task");
        planned.title = task.at("title");
      } catch (const json::exception& error) {
        throw BadDefinition(planned.place + ": " + error.what());
      }
      plan.push_back(planned);
    }
  }
  if (plan.empty()) throw BadDefinition(path + ": no tasks in it");
  return plan;
}

std::map<std::string, std::string> begin_definition(const Planned& planned) {
  try {
    const json task = parsed(planned);
    const std::string base = planned.family + "/" + planned.task;
    return {{base + ".toml", definition_text(task, odd_line(planned, task))},
            {base + ".h", header_text(planned.title)}};
  } catch (const json::exception& error) {
    throw BadDefinition(planned.place + ": " + error.what());
  }
}

std::vector<FamilyStatus> status_of(const std::string& root, const std::vector<Planned>& plan) {
  std::map<std::string, FamilyStatus> families;
  for (const Planned& planned : plan) {
    FamilyStatus& family = families[planned.family];
    family.family = planned.family;
    ++family.planned;
  }
  for (const std::string& id : find(root, {})) {
    FamilyStatus& family = families[id.substr(0, id.find('/'))];
    family.family = id.substr(0, id.find('/'));
    const bool known = std::any_of(plan.begin(), plan.end(),
                                   [&](const Planned& planned) { return planned.family + "/" + planned.task == id; });
    if (!known) family.unplanned.push_back(id);
    ++family.written;
    try {
      const Definition definition = load(root, id);
      if (definition.precision) ++family.measured;  // one that needs a tolerance would not load without
      if (definition.precision && !definition.precision->reference_ms.empty()) ++family.measured_on_gpu;
      if (definition.lint && definition.lint->hash == definition.problem.hash) ++family.linted;
    } catch (const BadDefinition&) {
      family.faulty.push_back(id);
    }
  }
  std::vector<FamilyStatus> all;
  for (const auto& [name, family] : families) all.push_back(family);
  return all;
}

}  // namespace kbench::generator
