#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "verifier/process/drop.h"
#include "verifier/process/process.h"

namespace kbench::process {

using namespace std::chrono_literals;

bool drop_to(uid_t uid) {
  return uid != 0 && setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0 &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
         prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0;
}

void close_from(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  // Old container profiles refuse what they do not know.
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t fd = static_cast<rlim_t>(first); fd < limit.rlim_cur; ++fd) close(static_cast<int>(fd));
}

int run_as(uid_t uid, const std::function<int()>& body, std::chrono::nanoseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  pid_t pid;
  // Processes that were killed hold their places until somebody has reaped them.
  while ((pid = fork()) < 0 && errno == EAGAIN && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  if (pid < 0) throw ProcessFault(std::string("fork: ") + strerror(errno));
  if (pid == 0) {
    umask(077);
    if (!drop_to(uid)) _exit(126);
    int status = 125;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  int status = 0;
  for (bool killed = false;;) {
    const pid_t got = waitpid(pid, &status, killed ? 0 : WNOHANG);
    if (got == pid) break;
    if (got < 0 && errno != EINTR) throw ProcessFault(std::string("waitpid: ") + strerror(errno));
    if (!killed && std::chrono::steady_clock::now() >= end) killed = ::kill(pid, SIGKILL) == 0;
    if (!killed) std::this_thread::sleep_for(500us);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string make_folder(uid_t uid, const std::string& parent) {
  unsigned char random[12];
  if (getrandom(random, sizeof random, 0) != sizeof random) throw ProcessFault("no entropy");
  std::string path = parent + "/kbench-";
  for (const unsigned char byte : random) {
    path += "0123456789abcdef"[byte >> 4];
    path += "0123456789abcdef"[byte & 15];
  }
  const int error = run_as(uid, [&] { return mkdir(path.c_str(), 0700) == 0 ? 0 : std::min(errno, 124); }, 10s);
  if (error != 0)
    throw ProcessFault(path + ": " + (error < 125 ? strerror(error) : "could not take on the worker's uid"));
  return path;
}

void write_file(uid_t uid, const std::string& path, std::string_view content) {
  const int error = run_as(
      uid,
      [&] {
        const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
        if (fd < 0) return std::min(errno, 124);
        std::string_view rest = content;
        while (!rest.empty()) {
          const ssize_t wrote = write(fd, rest.data(), rest.size());
          if (wrote <= 0) return wrote < 0 ? std::min(errno, 124) : ENOSPC;
          rest.remove_prefix(static_cast<std::size_t>(wrote));
        }
        return close(fd) == 0 ? 0 : std::min(errno, 124);
      },
      30s);
  if (error != 0)
    throw ProcessFault(path + ": " + (error < 125 ? strerror(error) : "could not take on the worker's uid"));
}

}  // namespace kbench::process
