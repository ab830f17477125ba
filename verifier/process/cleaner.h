// The child that signals all processes of a uid at once. Inside the folder only.
//
// Only kill(-1) is atomic against forks: the kernel walks the list of processes under a lock that fork takes too. It
// reaches exactly the worker's processes when its sender has the worker's uid, so a child forked beforehand takes that
// uid on, signals, and takes its own back. In these microseconds the worker may signal the child: it then breaks off,
// which is noticed and is the worker's violation. Its saved uid stays 0, so the worker can never trace it or read its
// memory.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace kbench::process {

class Cleaner {
 public:
  explicit Cleaner(uid_t uid);  // forks; throws ProcessFault
  ~Cleaner();
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;
  // Sends the signal to all processes of the uid. False: the child is dead or did not answer by then.
  bool signal_all(int signal, std::chrono::milliseconds deadline);

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace kbench::process
