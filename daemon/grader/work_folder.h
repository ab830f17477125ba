// The folder that attempts have theirs in: one process's alone. Internal to daemon/grader.
#pragma once

#include <mutex>
#include <set>
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

  // A new folder in it that is ours alone (0700), with leaves that containers may enter; gone with all in it at the
  // end. What an earlier one of the same name left is removed first. Throws std::system_error.
  class Scratch {
   public:
    Scratch(WorkFolder& parent, const std::string& name);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::string add(const std::string& leaf, unsigned mode) const;  // its path; whatever the umask is

   private:
    WorkFolder& parent_;
    const std::string name_, path_;
  };

  // Removes, as far as it can, the folders that are nobody's now: of a process that died, and of containers that wrote
  // on while theirs was removed.
  void clear();

 private:
  const std::string path_;
  int lock_ = -1;
  std::mutex mutex_;
  std::set<std::string> names_;  // in use
};

}  // namespace kbench::grader
