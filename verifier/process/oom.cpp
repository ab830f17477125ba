#include "verifier/process/oom.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kbench::process {
namespace {

// In a container the group's own folder is mounted as the root; outside /proc/self/cgroup says where it is.
std::vector<std::string> candidates() {
  std::vector<std::string> files{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) files.insert(files.begin(), "/sys/fs/cgroup" + path + "/memory.events");
    if (controllers == "memory") files.insert(files.begin(), "/sys/fs/cgroup/memory" + path + "/memory.oom_control");
  }
  return files;
}

}  // namespace

std::uint64_t oom_kills() {
  for (const std::string& name : candidates()) {
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
