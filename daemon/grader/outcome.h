// From what a measuring container left behind to how the attempt ends. Pure. Internal to daemon/grader.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/store/store.h"

namespace kbench::grader {

struct Compiled {  // compile.json, read as if a stranger had written it
  bool ok = false;
  int exit_code = -1;
  double seconds = 0;
  std::string log, compiler;
};
// nullopt when it is not what the verifier writes.
std::optional<Compiled> read_compiled(const std::string& json, std::size_t log_bytes_max);

struct Measured {
  std::optional<std::string> reward, details, infra;  // the files' texts
  int exit_code = 0;
  bool oom_killed = false;
  bool deadline_hit = false;   // we killed it
  double measuring_share = 0;  // of the time it had then, what it spent in worker runs of the submission
  bool disturbed = false;      // the Engine was away meanwhile
  std::string log;             // the container's, for people
};

// The measuring share of a container that ran for `whole`, by the verifier's events (`spool`, NDJSON). What it was
// doing last it did to the end.
double measuring_share(const std::string& spool, std::chrono::milliseconds whole);

struct Judged {
  store::Outcome outcome;
  bool gpu_fault = false;
};
// The verdict travels in files, never in an exit code or an output. Whatever is missing or contradicts itself is
// infrastructure. `extra`: JSON object of the daemon's own facts, added to the details as "daemon".
Judged judge(const Measured& measured, const std::string& device, const std::vector<std::string>& ranked_devices,
             const std::string& extra);

store::Outcome infra(const std::string& cause, bool final = false);
store::Outcome verdict_without_measuring(const char* verdict, const std::string& reason);

}  // namespace kbench::grader
