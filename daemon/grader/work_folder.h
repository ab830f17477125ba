// The folder that attempts have theirs in: one process's alone. Internal to daemon/grader.
#pragma once

#include <string>

namespace kbench::grader {

class WorkFolder {
 public:
  // Makes it (0700) and locks it; throws std::runtime_error with the fix.
  explicit WorkFolder(std::string path);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  // Sixteen hexadecimal digits, made at the first call and kept: two daemons on one Engine must not take each other's
  // containers for leftovers, whatever they are called.
  std::string owner() const;
  // Removes what attempts have left. Throws std::filesystem::filesystem_error.
  void clear() const;

 private:
  const std::string path_;
  int lock_ = -1;
};

}  // namespace kbench::grader
