// Leaves marks everywhere a process can, and looks for those that an earlier worker run left.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "honest.h"

static bool found_or_left(const std::string& folder) {
  const std::string path = folder + "/.kb-mark";
  if (access(path.c_str(), F_OK) == 0) return true;
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0666);
  if (fd >= 0) {
    if (write(fd, "outputs", 7) != 7) return false;
    close(fd);
  }
  return false;
}

static bool shared_memory() {
  if (shmget(0x6b62, 4096, 0) >= 0) return true;
  shmget(0x6b62, 4096, IPC_CREAT | 0666);
  return false;
}

static bool abstract_socket() {  // a process that outlives its worker run would hold the name
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, "\0kb-mark", 8);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return false;
  if (bind(fd, reinterpret_cast<sockaddr*>(&name), offsetof(sockaddr_un, sun_path) + 8) != 0) return true;
  listen(fd, 1);
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (;;) pause();
  }
  close(fd);
  return false;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first) {
    first = false;
    for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/run/lock", "/artefact",
                               "/kbench/out", "/tests", "/"})
      if (found_or_left(folder)) return kBreach;
    if (const char* home = std::getenv("HOME"); home && found_or_left(home)) return kBreach;
    if (shared_memory() || abstract_socket()) return kBreach;
  }
  return honest(*a);
}
