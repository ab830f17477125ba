// kbench-catalog: see generator.h.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "generator/generator.h"

namespace {

using namespace kbench::generator;

// Loads all, or reports the faults of all.
std::vector<Definition> load_all(const std::string& root, const std::vector<std::string>& ids) {
  std::vector<Definition> definitions;
  std::string faults;
  for (const std::string& id : ids) {
    try {
      definitions.push_back(load(root, id));
    } catch (const BadDefinition& bad) {
      faults += (faults.empty() ? "" : "\n") + std::string(bad.what());
    }
  }
  if (!faults.empty()) throw BadDefinition(faults);
  return definitions;
}

int generate(const std::string& root, const std::vector<std::string>& names, bool check) {
  const std::vector<Definition> all = load_all(root, find(root, {}));
  const std::vector<std::string> wanted = find(root, names);
  std::vector<std::string> differs;
  const auto add = [&](const std::vector<std::string>& more) {
    differs.insert(differs.end(), more.begin(), more.end());
  };
  for (const Definition& definition : all)
    if (std::find(wanted.begin(), wanted.end(), definition.id()) != wanted.end())
      add(write(root + "/tasks/" + definition.id(), render(root, definition), check));
  if (names.empty()) add(write_rest(root, all, check));
  for (const std::string& line : differs) std::printf("%s\n", line.c_str());
  std::printf("%zu of %zu tasks, %zu files %s\n", wanted.size(), all.size(), differs.size(),
              check ? "differ" : "written");
  return check && !differs.empty() ? 1 : 0;
}

int list(const std::string& root) {
  for (const Definition& d : load_all(root, find(root, {})))
    std::printf("%-60s %-8s %s\n", d.id().c_str(), d.problem.metric == kbench::Metric::tflops ? "TFLOP/s" : "GB/s",
                d.problem.title.c_str());
  return 0;
}

int show(const std::string& root, const std::string& name) {
  const Definition d = load(root, find(root, {name}).at(0));
  std::printf("%s  %s\n%s\nhash %s\n\n%s\n", d.id().c_str(), d.problem.version.c_str(), d.problem.title.c_str(),
              d.problem.hash.c_str(), d.op.c_str());
  std::printf("distinguishing  %s\nindependent     %s\nsource          %s\n", d.distinguishing.c_str(),
              d.independent.c_str(), d.source.c_str());
  if (d.precision) {
    std::printf("\nprecision (%s)\n", d.precision->conditions.c_str());
    for (const auto& [tensor, m] : d.precision->tensors)
      std::printf("  %-12s floor %.3g / %.3g   tolerance %.3g / %.3g   control %.3g / %.3g   (max / rms)\n",
                  tensor.c_str(), m.floor_max, m.floor_rms, m.tolerance.max, m.tolerance.rms, m.control_max,
                  m.control_rms);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kbench-catalog: task folders from the definitions under catalog/"};
  app.require_subcommand(1);
  std::string root = ".", one, device = "cpu";
  std::vector<std::string> names;
  bool check = false;
  app.add_option("--root", root, "the repository's folder")->check(CLI::ExistingDirectory);
  CLI::App* generate_command = app.add_subcommand("generate", "write tasks/ from catalog/");
  generate_command->add_option("task", names, "family/task or task; none: all of them and CATALOG.json");
  generate_command->add_flag("--check", check, "write nothing; exit 1 and say what differs");
  CLI::App* precision_command = app.add_subcommand("precision", "measure floor and control, write the tolerances");
  precision_command->add_option("task", names, "family/task or task; none: all");
  precision_command->add_option("--device", device, "cpu, or cuda: the graded dims too")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  CLI::App* list_command = app.add_subcommand("list", "all tasks");
  CLI::App* show_command = app.add_subcommand("show", "one task");
  show_command->add_option("task", one, "family/task or task")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    if (*generate_command) return generate(root, names, check);
    if (*precision_command) {
      for (const std::string& id : find(root, names)) measure_precision(root, id, device == "cuda");
      return 0;
    }
    if (*list_command) return list(root);
    if (*show_command) return show(root, one);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
