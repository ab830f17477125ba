// Bytes on a connection of the HTTP server, in two writes; each byte 0xff of the input ends the first.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "daemon/http/http.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

struct Site {
  Site() {
    http::Limits limits;
    limits.header_bytes_max = 1024;
    limits.body_bytes_max = 512;
    limits.bodies_bytes_max = 4096;
    limits.io_threads = 1;
    limits.handler_threads = 1;
    server = http::Server::create(limits);
    server->authenticate([](std::string_view token) -> std::optional<std::string> {
      if (token == "t") return "somebody";
      return std::nullopt;
    });
    const auto echo = [this](const http::Request& request) {
      ++handled;
      require(request.body.size() <= 512, "no body longer than the limit");
      http::Response response;
      response.body = request.body;
      return response;
    };
    server->route("GET", "/a", http::Access::open, echo, http::Work::quick);
    server->route("POST", "/a/{b}", http::Access::token, echo);
    port = server->listen("127.0.0.1", 0);
  }
  std::atomic<int> handled{0};
  std::unique_ptr<http::Server> server;
  std::uint16_t port = 0;
};

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

int connected(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const linger hard{1, 0};  // no TIME_WAIT: thousands a second would use up the ports
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  require(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "the server is there");
  return fd;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  static Site& site = *new Site;  // its threads end with the process
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(bytes.find('\xff'), bytes.size());
  const int socket = connected(site.port);
  const int handled = site.handled;
  send_all(socket, bytes.substr(0, cut));
  send_all(socket, bytes.substr(std::min(cut + 1, bytes.size())));
  ::shutdown(socket, SHUT_WR);
  std::string answers;
  char block[4096];
  for (ssize_t got; (got = ::recv(socket, block, sizeof block, 0)) > 0;)
    answers.append(block, static_cast<size_t>(got));
  ::close(socket);
  require(answers.empty() || answers.starts_with("HTTP/1.1 "), "an answer, or none");
  if (site.handled > handled)
    require(answers.find("HTTP/1.1 200 OK\r\n") != answers.npos, "what was handled was answered");
  return 0;
}
