#include "daemon/grader/receiver.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <thread>

using namespace kbench::grader;
using std::chrono::milliseconds;

namespace {

struct Post {
  std::string folder = [] {
    char name[] = "/tmp/kbench-report-XXXXXX";
    return std::string(::mkdtemp(name));
  }();
  std::vector<std::string> seen;
  EventLog log{[this](std::int64_t, const std::string& type, const std::string&) { seen.push_back(type); }};
  ReceiverLimits limits{.connections_max = 2,
                        .header_bytes_max = 512,
                        .body_bytes_max = 1000,
                        .request_timeout = milliseconds(300),
                        .peer_uid = ::getuid()};
  ~Post() { std::filesystem::remove_all(folder); }
  int connected() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder + "/report.sock").c_str());
    const timeval patience{5, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }
};

std::string answer(int fd) {  // one response, or what there was before the end
  std::string text;
  char byte;
  std::size_t end = text.npos;
  while (::recv(fd, &byte, 1, 0) == 1) {
    text.push_back(byte);
    if (end == text.npos) end = text.find("\r\n\r\n");
    if (end == text.npos) continue;
    const std::size_t at = text.find("Content-Length: ");
    if (text.size() == end + 4 + std::stoul(text.substr(at + 16))) break;
  }
  return text;
}

void send(int fd, const std::string& text) { ::send(fd, text.data(), text.size(), MSG_NOSIGNAL); }
std::string post(const std::string& body) {
  return "POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
const std::string kGet = "GET /events HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string kOne = "{\"seq\":1,\"type\":\"started\"}\n", kTwo = "{\"seq\":2,\"type\":\"phase\"}\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("events arrive, on one connection, split anywhere") {
  Post office;
  const Receiver receiver(office.folder, office.log, office.limits);
  const int fd = office.connected();
  send(fd, kGet);
  CHECK(has(answer(fd), "{\"next\":1}"));
  for (const char c : post(kOne)) send(fd, std::string(1, c));
  CHECK(has(answer(fd), "{\"next\":2}"));
  send(fd, post(kOne + kTwo) + kGet);  // pipelined
  CHECK(has(answer(fd), "{\"next\":3}"));
  CHECK(has(answer(fd), "{\"next\":3}"));
  send(fd, post("{\"seq\":9,\"type\":\"run\"}"));
  const std::string gap = answer(fd);
  CHECK(has(gap, "409"));
  CHECK(has(gap, "{\"next\":3}"));
  send(fd, post("rubbish"));
  CHECK(has(answer(fd), "400"));
  send(fd, "DELETE /events HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(has(answer(fd), "405 Method Not Allowed"));
  send(fd, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(has(answer(fd), "404 Not Found"));
  ::close(fd);
  CHECK(office.seen == std::vector<std::string>{"started", "phase"});
}

TEST_CASE("a store that is away is said, and asked again") {
  Post office;
  bool broken = true;
  EventLog log([&](std::int64_t, const std::string&, const std::string&) {
    if (broken) throw std::runtime_error("away");
  });
  const Receiver receiver(office.folder, log, office.limits);
  const int fd = office.connected();
  send(fd, post(kOne));
  CHECK(has(answer(fd), "503"));
  broken = false;
  send(fd, post(kOne));
  CHECK(has(answer(fd), "{\"next\":2}"));
  ::close(fd);
}

TEST_CASE("hostile requests end their connection, nothing else") {
  Post office;
  const Receiver receiver(office.folder, office.log, office.limits);
  const auto closed = [&](const std::string& text) {
    const int fd = office.connected();
    send(fd, text);
    char byte;
    while (::recv(fd, &byte, 1, 0) == 1) {
    }
    ::close(fd);
    const int other = office.connected();
    send(other, kGet);
    const bool alive = has(answer(other), "\"next\"");
    ::close(other);
    return alive;
  };
  CHECK(closed("rubbish\r\n\r\n"));
  CHECK(closed("GET /events HTTP/1.1\r\nX: " + std::string(600, 'x') + "\r\n\r\n"));
  CHECK(closed("POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"));
  CHECK(closed("POST /events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" +
               std::string(1024, 'x') + "\r\n0\r\n\r\n"));
  CHECK(closed("POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nslow"));  // ends at the deadline
}

TEST_CASE("a request is bounded as a whole, however it is cut") {
  Post office;
  office.limits.request_timeout = milliseconds(60'000);  // not what ends it
  const Receiver receiver(office.folder, office.log, office.limits);
  // Sends parts until it is refused; how many bytes were sent.
  const auto bytes_until_refused = [&](const std::string& begin, const std::string& part, std::size_t most) {
    const int fd = office.connected();
    const timeval soon{0, 2000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    send(fd, begin);
    std::size_t sent = begin.size();
    char byte = 0;
    while (sent < most && ::recv(fd, &byte, 1, 0) < 0) {
      send(fd, part);
      sent += part.size();
    }
    CHECK(byte == 'H');  // of HTTP/1.1 400
    ::close(fd);
    return sent;
  };
  const std::size_t header = office.limits.header_bytes_max, all = header + office.limits.body_bytes_max;
  CHECK(bytes_until_refused("GET /events HTTP/1.1\r\n", "A: 1\r\n", 8 * header) <= header + 100);
  CHECK(bytes_until_refused("GET /events HTTP/1.1\r\nA: 1\r\n", " x\r\n", 8 * header) <= header + 100);  // folded
  const std::string chunked = "POST /events HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(bytes_until_refused(chunked + "1;", "x=1;", 8 * all) <= all + 100);
  CHECK(bytes_until_refused(chunked, "1;x=1\r\nx\r\n", 8 * all) <= all + 100);
  CHECK(bytes_until_refused(chunked + "0\r\n", "A: 1\r\n", 8 * all) <= all + 100);
  const int fd = office.connected();
  const std::string body = kOne.substr(0, kOne.size() - 2) + ",\"x\":\"";
  send(fd, post(body + std::string(office.limits.body_bytes_max - body.size() - 3, 'x') + "\"}\n"));
  CHECK(has(answer(fd), "{\"next\":2}"));
  ::close(fd);
}

TEST_CASE("too many connections, and peers of another uid, are turned away") {
  Post office;
  {
    const Receiver receiver(office.folder, office.log, office.limits);
    const int one = office.connected(), two = office.connected();
    send(one, kGet);
    send(two, kGet);
    CHECK(has(answer(one), "\"next\""));
    CHECK(has(answer(two), "\"next\""));
    const int three = office.connected();
    send(three, kGet);
    CHECK(answer(three).empty());
    for (const int fd : {one, two, three}) ::close(fd);
  }
  CHECK_FALSE(std::filesystem::exists(office.folder + "/report.sock"));
  office.limits.peer_uid = ::getuid() + 1;
  const Receiver receiver(office.folder, office.log, office.limits);
  const int fd = office.connected();
  send(fd, kGet);
  CHECK(answer(fd).empty());
  ::close(fd);
}

TEST_CASE("a path too long for a socket is refused with its limit") {
  Post office;
  CHECK_THROWS_WITH(Receiver(office.folder + "/" + std::string(100, 'x'), office.log), Catch::Contains("107"));
}
