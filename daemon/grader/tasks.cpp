#include "daemon/grader/tasks.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace kbench::grader {

namespace fs = std::filesystem;

Tasks::Tasks(const std::string& root) {
  std::string faults;
  try {
    for (const fs::directory_entry& family : fs::directory_iterator(root)) {
      if (!family.is_directory()) continue;
      for (const fs::directory_entry& folder : fs::directory_iterator(family.path())) {
        const fs::path definition = folder.path() / "tests/task.json";
        if (!fs::is_regular_file(definition)) continue;
        Task task;
        task.id = family.path().filename().string() + "/" + folder.path().filename().string();
        task.folder = fs::absolute(folder.path()).lexically_normal().string();
        std::ifstream text(folder.path() / "instruction.md", std::ios::binary);
        task.instruction.assign(std::istreambuf_iterator<char>(text), {});
        try {
          task.problem = load_problem(definition.string());
        } catch (const BadProblem& fault) {
          faults += definition.string() + ": " + fault.what() + "\n";
          continue;
        }
        if (task.problem.family + "/" + task.problem.name != task.id)
          faults += definition.string() + ": says that it is " + task.problem.family + "/" + task.problem.name + "\n";
        tasks_.push_back(std::move(task));
      }
    }
  } catch (const fs::filesystem_error& fault) {
    faults += std::string(fault.what()) + "\n";
  }
  if (!faults.empty()) throw BadTasks(faults);
  std::sort(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) { return a.id < b.id; });
}

const Task* Tasks::find(const std::string& id) const {
  const auto found = std::lower_bound(tasks_.begin(), tasks_.end(), id,
                                      [](const Task& task, const std::string& wanted) { return task.id < wanted; });
  return found != tasks_.end() && found->id == id ? &*found : nullptr;
}

}  // namespace kbench::grader
