#include "verifier/grade/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "verifier/grade/grade.h"
#include "verifier/process/process.h"

namespace kbench::grade {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

void limit(int resource, std::uint64_t value) {
  const rlimit both{value, value};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char** arguments, char** environment, const char* folder, int output,
                         const ProcessLimits& limits) {
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0 || ::chdir(folder) != 0)
    ::_exit(127);
  limit(RLIMIT_AS, limits.memory_bytes);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  limit(RLIMIT_FSIZE, limits.file_bytes);
  limit(RLIMIT_NOFILE, limits.open_files);
  limit(RLIMIT_CORE, 0);
  ::environ = environment;  // execvp looks PATH up there
  ::execvp(arguments[0], arguments);
  constexpr char kMissing[] = "cannot start the program\n";
  [[maybe_unused]] const ssize_t wrote = ::write(2, kMissing, sizeof kMissing - 1);
  ::_exit(127);
}

// Reads until everyone who holds the other end is gone, or the deadline. What is over `keep` is counted only.
struct Drained {
  std::string text;
  std::uint64_t dropped = 0;
  bool in_time = true;
};
Drained drain(int fd, std::size_t keep, Clock::time_point deadline) {
  Drained out;
  char chunk[16 * 1024];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return out.in_time = false, out;
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    const std::size_t kept = std::min(static_cast<std::size_t>(got), keep - out.text.size());
    out.text.append(chunk, kept);
    out.dropped += static_cast<std::uint64_t>(got) - kept;
  }
}

bool exits_before(pid_t pid, Clock::time_point deadline, int* status) {
  for (;;) {
    const pid_t got = ::waitpid(pid, status, WNOHANG);
    if (got == pid) return true;
    if (got < 0 && errno != EINTR) throw GradeFault("compiler", "waitpid: " + std::string(std::strerror(errno)));
    if (Clock::now() >= deadline) return false;
    ::usleep(2000);
  }
}

}  // namespace

ProcessResult run_bounded(const std::vector<std::string>& arguments, const std::string& folder,
                          const ProcessLimits& limits) {
  std::vector<std::string> argument_copies = arguments;
  std::vector<std::string> environment = {std::string("PATH=") + kToolPath, "HOME=" + folder, "TMPDIR=" + folder,
                                          "LC_ALL=C"};
  std::vector<char*> argv = pointers(argument_copies), envp = pointers(environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw GradeFault("compiler", "no pipe");
  const auto start = Clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(argv.data(), envp.data(), folder.c_str(), ends[1], limits);
  }
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    throw GradeFault("compiler", "cannot fork: " + std::string(std::strerror(errno)));
  }
  ::setpgid(pid, pid);  // in both: whoever comes first
  const auto deadline = start + limits.wall;
  Drained output = drain(ends[0], limits.log_bytes, deadline);
  ::close(ends[0]);
  int status = 0;
  ProcessResult result;
  result.timed_out = !output.in_time || !exits_before(pid, deadline, &status);
  ::kill(-pid, SIGKILL);  // also what it left behind in its group
  if (result.timed_out) ::waitpid(pid, &status, 0);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.log = process::escaped(output.text, limits.log_bytes);
  if (output.dropped > 0) result.log += "\n[" + std::to_string(output.dropped) + " more bytes dropped]\n";
  return result;
}

}  // namespace kbench::grade
