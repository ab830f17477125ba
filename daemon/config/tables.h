// The parts of the table of options. Not for other folders.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/config/options.h"

// The member of a Config that an option is about; const where the Config is.
#define PLACE(member) ([](auto& c) -> auto& { return c.member; })

namespace kbench::config {

inline constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

void add_grading(std::vector<Option>& all);

}  // namespace kbench::config
