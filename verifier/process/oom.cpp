#include "verifier/process/oom.h"

#include <fstream>
#include <sstream>
#include <string>

#include "verifier/process/cgroup.h"

namespace kbench::process {

std::uint64_t oom_kills() {
  for (const std::string& name : group_files("memory", "memory.oom_control", "memory.events")) {
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string key;
      std::uint64_t value = 0;
      if (words >> key >> value && key == "oom_kill") return value;
    }
  }
  return 0;
}

}  // namespace kbench::process
