// The migrations of daemon/store/migrations, embedded at build time, in ascending order of version.
#pragma once

#include <string>
#include <vector>

namespace kbench::store {

struct Migration {
  int version;
  std::string name, sql;  // sql: statements, each ending with ";" at the end of a line
};
const std::vector<Migration>& migrations();

}  // namespace kbench::store
