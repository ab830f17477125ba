// Bytes on a connection of the HTTP server, at once and in two writes; each byte 0xff of the input ends the first.
// Where requests begin and end is read a second time here: the server has seen the same requests in the same order, or
// has refused one and ended the connection with it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "daemon/http/http.h"
#include "test/fuzz/framing.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/socket.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

// What a handler is given, as text.
std::string text_of(const std::string& method, const std::string& target, const std::string& body) {
  return method + " " + target + "\n" + body;
}

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
      require(request.body.size() <= 512, "no body longer than the limit");
      http::Response response;
      response.body = text_of(request.method, request.target, request.body);
      const std::scoped_lock lock(mutex);
      handled.push_back(response.body);
      return response;
    };
    server->route("GET", "/a", http::Access::open, echo, http::Work::quick);
    // Quick, too: a slow one would not be run for a client who has closed its side.
    server->route("POST", "/a/{b}", http::Access::token, echo, http::Work::quick);
    port = server->listen("127.0.0.1", 0);
  }
  std::vector<std::string> take() {
    const std::scoped_lock lock(mutex);
    return std::exchange(handled, {});
  }
  std::mutex mutex;
  std::vector<std::string> handled;
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
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    pollfd done{fd, POLLOUT, 0};  // libFuzzer's timer interrupts it; it goes on all the same
    require(errno == EINTR && ::poll(&done, 1, 10'000) == 1 && (done.revents & (POLLERR | POLLHUP)) == 0,
            "the server is there");
  }
  return fd;
}

// What the handlers were given for the bytes.
std::vector<std::string> served(std::string_view first, std::string_view second) {
  static Site& site = *new Site;  // its threads end with the process
  static const std::set<int> kKnown{200, 400, 401, 404, 405, 413, 415, 417, 431, 505};
  const int socket = connected(site.port);
  send_all(socket, first);
  send_all(socket, second);
  ::shutdown(socket, SHUT_WR);
  const std::string received = received_until_end(socket);
  ::close(socket);

  const std::string sent = std::string(first).append(second);
  const std::vector<Framed> requests = framed(sent);
  const std::vector<Answer> answers = answers_in(received, requests);
  require(answers.size() <= requests.size() + 1, "one answer a request, and one to what is none");
  require(requests.empty() || !answers.empty(), "a whole request is answered");
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Answer& answer = answers[i];
    require(kKnown.contains(answer.status), "a status that is known");
    require(!answer.closes || i + 1 == answers.size(), "nothing is said behind Connection: close");
    require(answer.closes || i < requests.size(), "a connection that goes on knows where its next request begins");
    if (answer.status != 200) continue;
    require(i < requests.size(), "what is handled is a whole request");
    expected.push_back(text_of(requests[i].method, requests[i].target, requests[i].body));
    require(requests[i].head_only() || answer.body == expected.back(), "an answer to its own request");
  }
  require(answers.size() >= requests.size() || answers.back().closes, "each request is answered while it goes on");
  const std::vector<std::string> handled = site.take();
  require(handled == expected, "the requests that were sent, in their order, are handled and no others");
  return handled;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(bytes.find('\xff'), bytes.size());
  const std::string_view first = bytes.substr(0, cut), second = bytes.substr(std::min(cut + 1, bytes.size()));
  const auto handled = served(first, second);
  if (cut < bytes.size())
    require(served(std::string(first).append(second), {}) == handled, "the same, however it is cut");
  return 0;
}
