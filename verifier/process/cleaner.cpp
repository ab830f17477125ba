#include "verifier/process/cleaner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "verifier/process/drop.h"
#include "verifier/process/process.h"

namespace kbench::process {
namespace {

// Only async-signal-safe calls: the parent may have threads. Raw set*id calls: glibc's would look for threads that are
// not here.
[[noreturn]] void serve(int socket, uid_t uid) {
  if (socket != 3) dup2(socket, 3);
  for (int standard = 0; standard < 3; ++standard) close(standard);
  close_from(4);
  setsid();  // within a session SIGCONT is anybody's to send: ours would reach the verifier's, and others' would reach
             // us
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  unsigned char signal = 0;
  while (read(3, &signal, 1) == 1) {
    unsigned char failed = 0;
    if (syscall(SYS_setresuid, uid, uid, 0) != 0) failed = 1;
    if (!failed && ::kill(-1, signal) != 0 && errno != ESRCH) failed = 1;
    if (syscall(SYS_setresuid, 0, 0, 0) != 0) failed = 1;
    if (write(3, &failed, 1) != 1) break;
  }
  _exit(0);
}

}  // namespace

Cleaner::Cleaner(uid_t uid) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    throw ProcessFault(std::string("cleaner: socketpair: ") + strerror(errno));
  pid_ = fork();
  if (pid_ == 0) serve(pair[1], uid);
  const int error = errno;
  close(pair[1]);
  socket_ = pair[0];
  if (pid_ < 0) {
    close(socket_);
    throw ProcessFault(std::string("cleaner: fork: ") + strerror(error));
  }
}

Cleaner::~Cleaner() {
  close(socket_);
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Cleaner::signal_all(int signal, std::chrono::milliseconds deadline) {
  const auto number = static_cast<unsigned char>(signal);
  if (send(socket_, &number, 1, MSG_NOSIGNAL) != 1) return false;
  pollfd wait{socket_, POLLIN, 0};
  int ready;
  do ready = poll(&wait, 1, static_cast<int>(deadline.count()));
  while (ready < 0 && errno == EINTR);
  unsigned char failed = 1;
  return ready == 1 && recv(socket_, &failed, 1, 0) == 1 && failed == 0;
}

}  // namespace kbench::process
