// The task catalogue as the daemon needs it: which tasks there are, and the folders their images are built from.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "verifier/problem/problem.h"

namespace kbench::grader {

struct Task {
  std::string id;           // "family/name"
  std::string folder;       // holds environment/ and tests/
  std::string instruction;  // Markdown; empty when there is none
  Problem problem;
};

struct BadTasks : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // every fault, a line each

class Tasks {
 public:
  Tasks() = default;
  // Reads <root>/<family>/<name>/tests/task.json. A folder without one is no task. Throws BadTasks.
  explicit Tasks(const std::string& root);
  const Task* find(const std::string& id) const;
  const std::vector<Task>& all() const { return tasks_; }

 private:
  std::vector<Task> tasks_;  // by id
};

}  // namespace kbench::grader
