// What the container's control groups say. Inside the folder only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kbench::process {

// Where a group's file may be: cgroup v1 (`controller`, `v1`) and v2 (`v2`). In a container the group's own folder is
// mounted as the root; outside /proc/self/cgroup says where it is.
std::vector<std::string> group_files(const std::string& controller, const std::string& v1, const std::string& v2);

// How many more processes and threads the container may have; nullopt where there is no limit that could be read.
std::optional<std::uint64_t> room_for_processes();

}  // namespace kbench::process
