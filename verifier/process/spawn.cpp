#include "verifier/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "verifier/process/cgroup.h"
#include "verifier/process/drop.h"
#include "verifier/protocol/protocol.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace kbench::process {

Page::Page(const char* name, Writer writer) {
  fd_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0 || ftruncate(fd_, protocol::kPageBytes) != 0)
    throw ProcessFault(std::string("memfd: ") + strerror(errno));
  data_ = mmap(nullptr, protocol::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data_ == MAP_FAILED) throw ProcessFault(std::string("mmap: ") + strerror(errno));
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (writer == Writer::verifier) seals |= F_SEAL_FUTURE_WRITE;  // this mapping stays writable, no other can be made so
  if (fcntl(fd_, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0)
    throw ProcessFault(std::string("memfd seals: ") + strerror(errno));
}

Page::~Page() {
  munmap(data_, protocol::kPageBytes);
  close(fd_);
}

std::vector<std::pair<std::string, std::string>> worker_environment(const std::string& home) {
  std::vector<std::pair<std::string, std::string>> all{{"HOME", home},
                                                       {"TMPDIR", home},
                                                       {"LANG", "C.UTF-8"},
                                                       // No JIT cache, nor an MPS daemon, that somebody left behind.
                                                       {"CUDA_CACHE_DISABLE", "1"},
                                                       {"CUDA_MPS_PIPE_DIRECTORY", home + "/no-mps"},
                                                       {"XDG_CACHE_HOME", home + "/cache"},
                                                       {"TRITON_CACHE_DIR", home + "/cache/triton"},
                                                       {"TORCHINDUCTOR_CACHE_DIR", home + "/cache/inductor"},
                                                       {"TORCH_EXTENSIONS_DIR", home + "/cache/torch_extensions"},
                                                       {"PYTHONDONTWRITEBYTECODE", "1"},
                                                       {"PYTHONUNBUFFERED", "1"},
                                                       {"PYTHONNOUSERSITE", "1"}};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NCCL_NVLS_ENABLE",
                           "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS"})
    if (const char* value = getenv(name)) all.emplace_back(name, value);
  return all;
}

namespace {

std::string resolve(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (true) {
    const auto colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + program;
    if (candidate.front() == '/' && access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  throw ProcessFault("no program '" + program + "' in PATH");
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& string : strings) all.push_back(string.data());
  all.push_back(nullptr);
  return all;
}

bool limit(int what, std::uint64_t value) {
  rlimit now;
  if (getrlimit(static_cast<__rlimit_resource>(what), &now) != 0) return false;
  const rlimit wanted{std::min<rlim_t>(value, now.rlim_max), std::min<rlim_t>(value, now.rlim_max)};
  return setrlimit(static_cast<__rlimit_resource>(what), &wanted) == 0;
}

// Kept for the verifier, whatever a worker does: it forks one at a time, threads of its own come and go.
constexpr std::uint64_t kProcessesKept = 16;

std::uint64_t processes_max(const Limits& limits) {
  const std::uint64_t room = room_for_processes().value_or(UINT64_MAX);
  return std::min(limits.processes, room > kProcessesKept ? room - kProcessesKept : 1);
}

constexpr char kDescriptors[] = "descriptors";  // failed before descriptor 4 was there to report on

// In the child, between fork and exec: nothing that allocates. Returns the name of the step that failed.
const char* become_worker(const Command& command, std::uint64_t processes, int socket, int output, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  umask(077);
  setsid();
  // Should memory run out, the worker goes before the verifier, unless it takes this back. While root: /proc/self is
  // root's.
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    [[maybe_unused]] const ssize_t wrote = write(score, "1000", 4);
    close(score);
  }
  // Out of the way of the final numbers first, so that no dup2 overwrites a source.
  socket = fcntl(socket, F_DUPFD_CLOEXEC, 10);
  output = fcntl(output, F_DUPFD_CLOEXEC, 10);
  report = fcntl(report, F_DUPFD_CLOEXEC, 10);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (socket < 0 || output < 0 || report < 0 || null < 0 || dup3(report, 4, O_CLOEXEC) < 0) return kDescriptors;
  if (dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || dup2(socket, 3) < 0)
    return "standard descriptors";
  close_from(5);
  const Limits& limits = command.limits;
  if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_NOFILE, limits.open_files) || !limit(RLIMIT_FSIZE, limits.file_bytes) ||
      !limit(RLIMIT_NPROC, processes))
    return "limits";
  if (!drop_to(command.uid)) return "taking on the uid";
  if (chdir(command.home.c_str()) != 0) return "entering its folder";
  return nullptr;
}

}  // namespace

pid_t spawn(const Command& command, int socket, int output) {
  if (command.uid == 0 || command.arguments.empty() || command.home.empty())
    throw ProcessFault("incomplete worker command");
  const std::string program = resolve(command.arguments[0]);
  std::vector<std::string> arguments = command.arguments, environment;
  auto variables = worker_environment(command.home);
  variables.insert(variables.end(), command.environment.begin(), command.environment.end());
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  const std::uint64_t processes = processes_max(command.limits);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) throw ProcessFault(std::string("pipe: ") + strerror(errno));

  const pid_t pid = fork();
  if (pid == 0) {
    const char* step = become_worker(command, processes, socket, output, report[1]);
    if (!step) {
      execve(program.c_str(), argv.data(), envp.data());
      step = "executing the worker";
    }
    const int error = errno;
    dprintf(step == kDescriptors ? report[1] : 4, "%s: %s", step, strerror(error));
    _exit(127);
  }
  const int fork_error = errno;
  close(report[1]);
  // End of file: exec has closed it.
  char text[256];
  const ssize_t got = pid > 0 ? read(report[0], text, sizeof text) : 0;
  close(report[0]);
  if (pid < 0) throw ProcessFault(std::string("fork: ") + strerror(fork_error));
  if (got > 0) {
    waitpid(pid, nullptr, 0);
    throw ProcessFault(program + ": " + std::string(text, static_cast<std::size_t>(got)));
  }
  return pid;
}

}  // namespace kbench::process
