// Inside grade/: one compiler process, bounded in every way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kbench::grade {

struct ProcessLimits {
  std::chrono::seconds wall{120};
  std::uint64_t memory_bytes = 16ULL << 30;  // RLIMIT_AS
  std::uint64_t cpu_seconds = 600;           // RLIMIT_CPU, a process
  std::uint64_t file_bytes = 1ULL << 30;     // RLIMIT_FSIZE
  std::uint64_t open_files = 1024;
  std::size_t log_bytes = 64 * 1024;  // of output kept
};

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  bool timed_out = false;
  double seconds = 0;
  std::string log;  // stdout and stderr, escaped, cut to log_bytes with a line saying so
};

// Runs the program (looked up in kToolPath) in `folder` with an environment of its own: PATH, HOME and TMPDIR =
// `folder`, LC_ALL=C. Its process group is killed at the deadline and when it has ended. Throws GradeFault when no
// process can be made.
ProcessResult run_bounded(const std::vector<std::string>& arguments, const std::string& folder,
                          const ProcessLimits& limits);

inline constexpr char kToolPath[] = "/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace kbench::grade
