// Bytes on a connection of the HTTP server, in two writes; each byte 0xff of the input ends the first.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "daemon/http/http.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/socket.h"

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
    // Quick, too: a slow one would not be run for a client who has closed its side.
    server->route("POST", "/a/{b}", http::Access::token, echo, http::Work::quick);
    port = server->listen("127.0.0.1", 0);
  }
  std::atomic<int> handled{0};
  std::unique_ptr<http::Server> server;
  std::uint16_t port = 0;
};

// From one address after another: a connection's end keeps its port for a minute, and one address has 28,000 of them.
int connected(std::uint16_t port) {
  static std::uint32_t connections = 0;
  constexpr std::uint32_t kFirst = 0x7f010000, kEach = 10'000, kAddresses = 60'000;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(kFirst + connections++ / kEach % kAddresses);
  ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  require(::bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0, "an address to come from");
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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
  const std::string answers = received_until_end(socket);
  ::close(socket);
  require(answers.empty() || answers.starts_with("HTTP/1.1 "), "an answer, or none");
  if (site.handled > handled)
    require(answers.find("HTTP/1.1 200 OK\r\n") != answers.npos, "what was handled was answered");
  return 0;
}
