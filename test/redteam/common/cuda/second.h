// A process with a CUDA context of its own: a forked child cannot use its parent's, so this library is loaded into
// another program by LD_PRELOAD, where a thread does the work that the environment names.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

constexpr const char* kRoleName = "KB_REDTEAM_ROLE";

// The pid of the child in between, or -1. `keep_fd`, if any, is inherited under its own number. With `detached` the
// program is nobody's child and in a session of its own.
inline pid_t start_second(const std::string& role, int keep_fd = -1, bool detached = true) {
  Dl_info self{};
  if (!dladdr(reinterpret_cast<void*>(&start_second), &self) || !self.dli_fname) return -1;
  const std::string library = self.dli_fname;
  const pid_t child = fork();
  if (child != 0) return child;
  if (detached) {
    setsid();
    if (fork() != 0) _exit(0);
  }
  if (keep_fd >= 0) fcntl(keep_fd, F_SETFD, 0);
  setenv("LD_PRELOAD", library.c_str(), 1);
  setenv(kRoleName, role.c_str(), 1);
  execl("/bin/sleep", "sleep", "1000", static_cast<char*>(nullptr));
  _exit(1);
}

// The role this process was started for, or empty in the worker itself.
inline std::string role() {
  const char* name = std::getenv(kRoleName);
  return name ? name : "";
}

// From a constructor. The thread waits until all constructors have run: a kernel is known to the runtime only after
// that.
inline void when_loaded(void (*work)()) {
  std::thread([work] {
    usleep(200'000);
    work();
  }).detach();
}
