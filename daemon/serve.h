// The daemon as a whole: every part made, joined, and taken down in order.
#pragma once

#include <string>

#include "daemon/config/config.h"

namespace kbench {

// Runs until SIGTERM or SIGINT; both must be blocked in every thread. Returns when all has been given back. Throws
// std::runtime_error with what an operator has to mend when it cannot start.
void serve(const config::Config& config, const std::string& version);

// What serve() would need and can be looked at without changing anything, a line each on standard output. False:
// something is amiss.
bool check(const config::Config& config);

}  // namespace kbench
