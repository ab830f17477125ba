// kbench-catalog: see generator.h.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "generator/bench.h"
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

// A definition's beginning from the plan. Writes nothing where there is one already.
int begin(const std::string& root, const std::string& plan, const std::string& family, const std::string& task) {
  namespace fs = std::filesystem;
  const std::vector<Planned> planned = read_plan(plan);
  const auto found = std::find_if(planned.begin(), planned.end(),
                                  [&](const Planned& p) { return p.family == family && p.task == task; });
  if (found == planned.end()) {
    std::string elsewhere;
    for (const Planned& p : planned)
      if (p.task == task) elsewhere = "; it is of family " + p.family;
    throw BadDefinition(family + "/" + task + ": not in the plan (" + plan + ")" + elsewhere);
  }
  const std::map<std::string, std::string> files = begin_definition(*found);
  for (const auto& [name, text] : files)
    if (fs::exists(fs::path(root) / "catalog" / name)) throw BadDefinition("catalog/" + name + ": is there already");
  for (const auto& [name, text] : files) {
    const fs::path path = fs::path(root) / "catalog" / name;
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::runtime_error(path.string() + ": cannot be written");
    std::printf("catalog/%s\n", name.c_str());
  }
  std::printf(
      "Next: check the formula against its source, write the functions of the .h, then kbench-catalog precision %s\n",
      task.c_str());
  return 0;
}

// Tasks side by side on the cpu, one after another on a GPU. Rows come in the order of the tasks.
int lint_all(const std::string& root, const std::vector<std::string>& ids, bool cuda, unsigned jobs) {
  std::vector<std::vector<LintRow>> found(ids.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < ids.size();) {
      try {
        found[i] = lint(root, ids[i], cuda);
      } catch (const std::exception& error) {
        found[i] = {{ids[i], "definition", "FAILED", error.what()}};
      }
    }
  };
  std::vector<std::thread> others;
  for (unsigned n = 1; n < jobs && n < ids.size(); ++n) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  std::size_t checks = 0, failed = 0, good = 0;
  for (const std::vector<LintRow>& rows : found) {
    std::size_t faults = 0;
    for (const LintRow& row : rows) {
      std::printf("%-60s %-20s %-8s %s\n", row.task.c_str(), row.check.c_str(), row.verdict.c_str(),
                  row.detail.c_str());
      faults += row.verdict == "FAILED" ? 1 : 0;
    }
    checks += rows.size(), failed += faults, good += faults == 0 ? 1 : 0;
  }
  std::printf("%zu of %zu tasks good, %zu checks, %zu failed\n", good, ids.size(), checks, failed);
  return failed == 0 ? 0 : 1;
}

int status(const std::string& root, const std::string& plan) {
  int planned = 0, written = 0, measured = 0, on_gpu = 0, linted = 0, begun = 0;
  const std::vector<FamilyStatus> families = status_of(root, read_plan(plan));
  std::printf("%-28s %7s %7s %8s %6s %6s\n", "family", "planned", "written", "measured", "on GPU", "linted");
  for (const FamilyStatus& f : families) {
    std::printf("%-28s %7d %7d %8d %6d %6d\n", f.family.c_str(), f.planned, f.written, f.measured, f.measured_on_gpu,
                f.linted);
    planned += f.planned, written += f.written, measured += f.measured, on_gpu += f.measured_on_gpu;
    linted += f.linted, begun += f.written > 0 ? 1 : 0;
    for (const std::string& id : f.unplanned) std::printf("  %s: not in the plan\n", id.c_str());
    for (const std::string& id : f.faulty) std::printf("  %s: has faults, or is not measured; see list\n", id.c_str());
  }
  std::printf("%d of %d written, %d measured, %d of them on a GPU, %d linted; %d of %zu families\n", written, planned,
              measured, on_gpu, linted, begun, families.size());
  return 0;
}

int list(const std::string& root) {
  for (const Definition& d : load_all(root, find(root, {})))
    std::printf("%-60s %-8s %s\n", d.id().c_str(), d.problem.metric == kbench::Metric::tflops ? "TFLOP/s" : "GB/s",
                d.problem.title.c_str());
  return 0;
}

// What the plan says of a task that is not written; false where it says nothing.
bool show_planned(const std::string& plan, const std::string& name) {
  for (const Planned& p : read_plan(plan)) {
    if (p.task != name && p.family + "/" + p.task != name) continue;
    std::printf("# not written yet; %s\n%s", p.place.c_str(),
                begin_definition(p).at(p.family + "/" + p.task + ".toml").c_str());
    return true;
  }
  return false;
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
  app.fallthrough();  // --root before the command or after it
  std::string root = ".", one, family, plan, device = "cpu";
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
  CLI::App* lint_command =
      app.add_subcommand("lint", "whether the rules see through what must not pass, and sizes fit");
  lint_command->add_option("task", names, "family/task or task; none: all");
  lint_command->add_option("--device", device, "cpu, or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  lint_command->add_option("--jobs", jobs, "tasks at a time, on the cpu")->check(CLI::Range(1, 64));
  CLI::App* new_command = app.add_subcommand("new", "begin a definition from a line of the plan");
  new_command->add_option("family", family, "one of catalog/plan")->required();
  new_command->add_option("task", one, "its name in the plan")->required();
  new_command->add_option("--plan", plan, "a .jsonl file, or a folder of them; default: catalog/plan");
  CLI::App* status_command = app.add_subcommand("status", "how much of the plan is written, measured, linted");
  status_command->add_option("--plan", plan, "as of new");
  CLI::App* list_command = app.add_subcommand("list", "all tasks");
  CLI::App* show_command = app.add_subcommand("show", "one task");
  show_command->add_option("task", one, "family/task or task")->required();
  CLI11_PARSE(app, argc, argv);
  tell_crashes();
  try {
    if (*generate_command) return generate(root, names, check);
    if (*precision_command) {
      for (const std::string& id : find(root, names)) measure_precision(root, id, device == "cuda");
      return 0;
    }
    if (plan.empty()) plan = root + "/catalog/plan";
    if (*new_command) return begin(root, plan, family, one);
    if (*status_command) return status(root, plan);
    if (*lint_command) return lint_all(root, find(root, names), device == "cuda", device == "cuda" ? 1 : jobs);
    if (*list_command) return list(root);
    if (*show_command) {
      const std::vector<std::string> all = find(root, {});
      const bool written = std::any_of(all.begin(), all.end(), [&](const std::string& id) {
        return id == one || id.substr(id.find('/') + 1) == one;
      });
      return !written && std::filesystem::exists(plan) && show_planned(plan, one) ? 0 : show(root, one);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
