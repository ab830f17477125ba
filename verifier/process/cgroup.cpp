#include "verifier/process/cgroup.h"

#include <algorithm>
#include <fstream>

namespace kbench::process {

std::vector<std::string> group_files(const std::string& controller, const std::string& v1, const std::string& v2) {
  const std::string root = "/sys/fs/cgroup";
  std::vector<std::string> files{root + "/" + v2, root + "/" + controller + "/" + v1};
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) files.insert(files.begin(), root + path + "/" + v2);
    if (controllers == controller) files.insert(files.begin(), root + "/" + controller + path + "/" + v1);
  }
  return files;
}

std::optional<std::uint64_t> room_for_processes() {
  const std::vector<std::string> limits = group_files("pids", "pids.max", "pids.max");
  for (const std::string& file : limits) {
    std::uint64_t limit = 0, current = 0;
    std::ifstream of_limit(file), of_current(file.substr(0, file.rfind('/')) + "/pids.current");
    if (of_limit >> limit && of_current >> current) return limit - std::min(limit, current);
  }
  return std::nullopt;
}

}  // namespace kbench::process
