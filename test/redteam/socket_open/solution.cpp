// Looks for a way out: the network, the report socket, the Engine, the host's sockets.
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "honest.h"

static bool reaches(const char* address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::uint16_t(port));
  inet_pton(AF_INET, address, &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  bool out = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  if (!out && errno == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    int error = ETIMEDOUT;
    socklen_t bytes = sizeof error;
    out = poll(&wait, 1, 1000) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0;
  }
  close(fd);
  return out;
}

static bool talks_to(const char* path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path, sizeof name.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const bool out = fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
  close(fd);
  return out;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first) {
    first = false;
    if (reaches("1.1.1.1", 80) || reaches("172.17.0.1", 8700) || reaches("127.0.0.1", 8700)) return kBreach;
    for (const char* path :
         {"/kbench/report/report.sock", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"})
      if (talks_to(path)) return kBreach;
    if (socket(AF_PACKET, SOCK_RAW, 0) >= 0 || socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0) return kBreach;
  }
  return honest(*a);
}
