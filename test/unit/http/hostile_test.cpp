// Clients that mean harm: what they cost is bounded, and others do not notice.
#include <malloc.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "daemon/http/http.h"
#include "test/unit/http/client.h"
#include "test/unit/http/crowd.h"

using namespace kbench::http;
using namespace kbench::test;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 60s;  // of a test on a busy machine; nothing here takes so long

constexpr std::size_t kLargeBytes = 8 << 20;  // more than sockets' buffers take

struct Fixture {
  explicit Fixture(const Limits& limits = patient()) : server(Server::create(limits)) {
    server->route("GET", "/ping", Access::open, [](const Request&) { return text("pong"); }, Work::quick);
    server->route("GET", "/large", Access::open, [](const Request&) { return text(std::string(kLargeBytes, 'x')); });
    server->route("POST", "/echo", Access::open, [this](const Request& r) {
      ++handled;
      return text("|" + r.body + "|");
    });
    server->route("GET", "/gate", Access::open, [this](const Request&) {
      ++handled;
      gate.wait(false);
      return text("through");
    });
    server->route("GET", "/stream", Access::open, [this](const Request&) {
      Response r;
      r.content_type = "text/event-stream";
      r.stream = Stream{[] { return std::pair<std::string, bool>("", false); },
                        [place = std::make_shared<Place>(streams)](auto) {}};
      return r;
    });
    port = server->listen("127.0.0.1", 0);
  }
  static Limits patient() {
    Limits limits;
    limits.header_bytes_max = 4096;
    limits.body_bytes_max = 100'000;
    limits.idle_timeout = limits.request_timeout = 300s;
    return limits;
  }
  static Response text(std::string body) {
    Response r;
    r.content_type = "text/plain";
    r.body = std::move(body);
    return r;
  }
  std::string ask(const std::string& bytes) const {
    RawClient client(port);
    client.send(bytes);
    return client.answer(kPatience);
  }
  bool alive() const { return body_of(ask("GET /ping HTTP/1.1\r\nHost: h\r\n\r\n")) == "pong"; }

  struct Place {
    explicit Place(std::atomic<int>& c) : count(c) { ++count; }
    ~Place() { --count; }
    std::atomic<int>& count;
  };
  std::atomic<int> streams{0};    // open ones
  std::atomic<bool> gate{false};  // /gate is answered once it is true
  void open_gate() {
    gate = true;
    gate.notify_all();
  }
  // Until so many requests of /gate and /echo are being handled, or were.
  bool handling(int count) const {
    for (int tries = 0; tries < 12'000 && handled < count; ++tries) std::this_thread::sleep_for(5ms);
    return handled == count;
  }
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
  std::atomic<int> handled{0};
};

std::string post(const std::string& headers, const std::string& body) {
  return "POST /echo HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n" + body;
}

// Sends `piece` until the server has had enough, or `bytes_max` are gone; how many were taken.
std::size_t flood(RawClient& client, const std::string& piece, std::size_t bytes_max) {
  std::size_t sent = 0;
  while (sent < bytes_max && client.send(piece)) sent += piece.size();
  return sent;
}

}  // namespace

TEST_CASE("ten thousand idle connections cost little and nobody else anything") {
  constexpr int count = 10'000;
  allow_connections(count);
  Crowd crowd;  // before the server's threads
  auto limits = Fixture::patient();
  limits.connections_max = count + 10;
  const Fixture f(limits);
  CHECK(f.alive());
  const long before = resident_bytes();
  REQUIRE(crowd.connect(f.port, count) == count);
  CHECK(f.alive());  // accepted in order: all of the crowd are there now
  const long each = (resident_bytes() - before) / count;
  INFO(each << " bytes a connection");
  CHECK(each < kOverhead * 16 * 1024);
  CHECK(crowd.ask() == count);
  CHECK(f.alive());
}

TEST_CASE("silent connections shut nobody out: the one idle longest gives way, requests and streams never do") {
  auto limits = Fixture::patient();
  limits.connections_max = 5;
  limits.stream_heartbeat = 100ms;
  Fixture f(limits);
  const std::string ping = "GET /ping HTTP/1.1\r\nHost: h\r\n\r\n";
  RawClient begun(f.port), waiting(f.port), stream(f.port), first(f.port), second(f.port);
  begun.send(ping.substr(0, 10));
  waiting.send("GET /gate HTTP/1.1\r\nHost: h\r\n\r\n");
  stream.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(f.handling(1));
  CHECK(stream.until(":\n\n", kPatience).find("200 OK") != std::string::npos);
  for (auto* client : {&second, &first}) {
    client->send(ping);
    CHECK(body_of(client->answer(kPatience)) == "pong");
    std::this_thread::sleep_for(100ms);  // it is idle only some time after its answer was sent
  }
  RawClient third(f.port);
  third.send(ping);
  CHECK(body_of(third.answer(kPatience)) == "pong");
  CHECK(second.closed(kPatience));  // before `first`, which came first but was served last
  first.send(ping.substr(0, 10));
  third.send(ping.substr(0, 10));
  std::this_thread::sleep_for(100ms);
  RawClient extra(f.port);
  extra.send(ping);
  const auto refused = extra.answer(kPatience);
  CHECK(status_of(refused) == 503);
  CHECK(refused.find("connections (http.connections_max)") != std::string::npos);
  CHECK(refused.find("Retry-After: ") != std::string::npos);
  for (auto* client : {&begun, &first, &third}) {
    client->send(ping.substr(10));
    CHECK(body_of(client->answer(kPatience)) == "pong");
  }
  f.open_gate();
  CHECK(body_of(waiting.answer(kPatience)) == "through");
  CHECK(f.streams == 1);
}

TEST_CASE("headers without end: refused at the limit, as one line, as many, and before the first line's end") {
  const Fixture f;
  const long before = resident_bytes();
  for (const std::string& piece : {std::string(1000, 'x'), std::string("a: b\r\n"), std::string("a:\r\n")}) {
    RawClient client(f.port);
    client.send("GET /ping HTTP/1.1\r\nHost: h\r\n");
    CHECK(flood(client, piece, 64 << 20) < 64 << 20);
    RawClient counted(f.port);  // just over the limit, and at once: the answer arrives
    std::string over = "GET /ping HTTP/1.1\r\nHost: h\r\n";
    while (over.size() <= 4096) over += piece;
    counted.send(over);
    CHECK(status_of(counted.answer(kPatience)) == 431);
  }
  RawClient slow(f.port);  // a few fields at a time, each block whole
  slow.send("GET /ping HTTP/1.1\r\nHost: h\r\n");
  for (int i = 0; i < 10; ++i) {
    slow.send("aaaa: bb\r\n" + std::string(500, 'c') + ": d\r\n");
    std::this_thread::sleep_for(20ms);
  }
  CHECK(status_of(slow.answer(kPatience)) == 431);
  RawClient line(f.port);
  line.send("GET /" + std::string(5000, 'x'));
  CHECK(status_of(line.answer(kPatience)) == 431);
  CHECK(resident_bytes() - before < kOverhead * (16 << 20));
}

TEST_CASE("a header has so many fields and no more, in however many pieces it comes") {
  const Fixture f;
  const int most = Fixture::patient().header_fields_max;
  for (const std::size_t piece_bytes : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
    for (const int fields : {most, most + 1}) {
      INFO(fields << " fields in pieces of " << piece_bytes);
      std::string request = "GET /ping HTTP/1.1\r\nHost: h\r\n";
      for (int i = 1; i < fields; ++i) request += "a:\r\n";
      request += "\r\n";
      // What follows is not of this header.
      request += post("Content-Length: 400\r\n", std::string(400, '\n'));
      RawClient client(f.port);
      for (std::size_t at = 0; at < request.size(); at += piece_bytes) client.send(request.substr(at, piece_bytes));
      CHECK(status_of(client.answer(kPatience)) == (fields == most ? 200 : 431));
    }
  }
}

TEST_CASE("a crowd with small fields costs what its bytes cost") {
  constexpr int kClients = 1000;
  allow_connections(2 * kClients);
  auto limits = Fixture::patient();
  limits.header_bytes_max = Limits().header_bytes_max;
  const Fixture f(limits);
  const long before = resident_bytes();
  std::string begin = "GET /ping HTTP/1.1\r\nHost: h\r\n", over = begin, just = begin;
  while (over.size() < limits.header_bytes_max - 8) over += "a:\r\n";
  for (int i = 2; i < limits.header_fields_max; ++i) just += "a:\r\n";
  just += "b: " + std::string(limits.header_bytes_max - just.size() - 8, 'c');
  std::vector<RawClient> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(f.port);
    clients.back().send(i % 2 == 0 ? over : just);
  }
  CHECK(f.alive());
  const long each = (resident_bytes() - before) / kClients;
  INFO(each << " bytes a connection");
  CHECK(each < kOverhead * 64 * 1024);
  for (int i = 0; i < kClients; i += 2) CHECK(status_of(clients[static_cast<std::size_t>(i)].answer(kPatience)) == 431);
  for (int i = 1; i < kClients; i += 2) {
    clients[static_cast<std::size_t>(i)].send("\r\n\r\n");
    CHECK(status_of(clients[static_cast<std::size_t>(i)].answer(kPatience)) == 200);
  }
}

TEST_CASE("chunk extensions and trailers without end are refused, whatever memory the server has") {
  const Fixture f;
  const long before = resident_bytes();
  const std::string begin = post("Transfer-Encoding: chunked\r\n", "");
  for (const auto& [first, piece] :
       std::vector<std::pair<std::string, std::string>>{{"1;", std::string(10'000, 'x')},  // one extension
                                                        {"1", ";a=b;c=\"d\""},             // many
                                                        {"0\r\n", "a: b\r\n"},             // a trailer of many fields
                                                        {"0\r\na: ", std::string(10'000, 'x')},  // of one
                                                        {"0\r\n", "Content-Length: 1\r\n"},      // of those that matter
                                                        {"000000", std::string(10'000, '0')},    // a size
                                                        {"1\r\nx\r\n1;", std::string(10'000, 'x')}}) {
    INFO(first << piece.substr(0, 20));
    RawClient client(f.port);
    client.send(begin + first);
    CHECK(flood(client, piece, 256 << 20) < 256 << 20);
  }
  CHECK(resident_bytes() - before < kOverhead * (16 << 20));
  CHECK(f.handled == 0);
  CHECK(f.alive());
  // A little of either is no harm.
  CHECK(body_of(f.ask(begin + "1;a=b;c=\"d\"\r\nx\r\n0;e\r\nF: g\r\n\r\n")) == "|x|");
  RawClient refused(f.port);
  refused.send(begin + "1;" + std::string(80'000, 'x'));
  CHECK(status_of(refused.answer(kPatience)) == 400);
}

TEST_CASE("chunks of one byte with long extensions are bounded by the body's limit and the request's time") {
  auto limits = Fixture::patient();
  limits.body_bytes_max = 1000;
  const Fixture f(limits);
  const std::string chunk = "1;" + std::string(2000, 'x') + "\r\ny\r\n";
  RawClient client(f.port);
  client.send(post("Transfer-Encoding: chunked\r\n", ""));
  CHECK(flood(client, chunk, 64 << 20) < 64 << 20);
  CHECK(f.handled == 0);
  limits.request_timeout = 700ms;
  const Fixture hasty(limits);
  RawClient slow(hasty.port);
  slow.send(post("Transfer-Encoding: chunked\r\n", ""));
  std::atomic<bool> over{false};
  std::thread trickle([&] {  // never at the body's limit, never silent
    while (!over && slow.send("1\r\ny\r\n")) std::this_thread::sleep_for(50ms);
  });
  CHECK(slow.until("HTTP/1.1 408", kPatience).find("HTTP/1.1 408") == 0);
  over = true;
  trickle.join();
  CHECK(hasty.handled == 0);
}

TEST_CASE("bodies that are announced and never come cost their connection only") {
  auto limits = Fixture::patient();
  limits.body_bytes_max = 16 << 20;
  limits.bodies_bytes_max = 20 << 20;
  const Fixture f(limits);
  const long before = resident_bytes();
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(f.port);
    clients.back().send(post("Content-Length: 16777216\r\n", "abc"));
  }
  CHECK(status_of(f.ask(post("Content-Length: 1000000\r\n", std::string(1'000'000, 'x')))) == 200);
  const long each = (resident_bytes() - before) / 200;
  INFO(each << " bytes a connection");
  CHECK(each < kOverhead * 128 * 1024);  // 16 MiB times 200 were announced
}

TEST_CASE("answers that nobody takes are bounded all together, and small ones go on") {
  auto limits = Fixture::patient();
  limits.answers_bytes_max = 3 * kLargeBytes;
  limits.handler_threads = 2;  // each may have one more at hand while it is refused
  const Fixture f(limits);
  const std::string large = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
  std::vector<RawClient> lazy;
  for (int i = 0; i < 3; ++i) {
    lazy.emplace_back(f.port, 4096);
    lazy.back().send(large);
    CHECK(lazy.back().until("\r\n\r\n", kPatience).starts_with("HTTP/1.1 200"));
  }
  const long before = resident_bytes();
  for (int i = 0; i < 20; ++i) {
    lazy.emplace_back(f.port, 4096);
    lazy.back().send(large);
    const auto refused = lazy.back().answer(kPatience);
    CHECK(status_of(refused) == 503);
    CHECK(refused.find("bytes (http.answers_bytes_max)") != std::string::npos);
    CHECK(refused.find("Retry-After: ") != std::string::npos);
  }
  CHECK(resident_bytes() - before < kOverhead * (32 << 20));
  CHECK(f.alive());
  CHECK(lazy[0].answer(kPatience).size() > kLargeBytes);
  int status = 0;
  for (int tries = 0; tries < 1000 && status != 200; ++tries) {  // the server may learn of it a moment later
    status = status_of(f.ask(large));
    std::this_thread::sleep_for(5ms);
  }
  CHECK(status == 200);
}

TEST_CASE("so many requests wait to be handled and no more, and quick ones do not wait with them") {
  auto limits = Fixture::patient();
  limits.handler_threads = 2;
  limits.waiting_max = 3;
  Fixture f(limits);
  const std::string gate = "GET /gate HTTP/1.1\r\nHost: h\r\n\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(f.port);
    clients.back().send(gate);
    CHECK(f.handling(i + 1));
  }
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(f.port);
    clients.back().send(gate);
  }
  std::this_thread::sleep_for(100ms);
  CHECK(f.alive());
  f.open_gate();
  int through = 0, refused = 0;
  for (auto& client : clients) {
    const auto answer = client.answer(kPatience);
    through += status_of(answer) == 200;
    refused += status_of(answer) == 503 && answer.find("Retry-After: ") != std::string::npos &&
               answer.find("requests (http.waiting_max)") != std::string::npos;
  }
  CHECK(through == 5);
  CHECK(refused == 1);
}

TEST_CASE("nothing is done for clients who left before their turn") {
  auto limits = Fixture::patient();
  limits.handler_threads = 1;
  Fixture f(limits);
  const std::string gate = "GET /gate HTTP/1.1\r\nHost: h\r\n\r\n";
  RawClient first(f.port);
  first.send(gate);
  CHECK(f.handling(1));
  for (int i = 0; i < 20; ++i) {
    RawClient gone(f.port);
    gone.send(gate);
  }
  std::this_thread::sleep_for(100ms);
  f.open_gate();
  CHECK(body_of(first.answer(kPatience)) == "through");
  CHECK(body_of(f.ask(post("Content-Length: 1\r\n", "x"))) == "|x|");
  CHECK(f.handled == 2);
}

TEST_CASE("requests that come faster than their answers are taken wait in the client") {
  const Fixture f;
  const long before = resident_bytes();
  RawClient client(f.port, 4096);
  std::string batch;
  for (int i = 0; i < 1000; ++i) batch += "GET /nothing HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
  std::atomic<bool> closed{false};
  std::thread sender([&] {
    flood(client, batch, 1 << 30);
    closed = true;
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(f.alive());
    std::this_thread::sleep_for(20ms);
  }
  CHECK(resident_bytes() - before < kOverhead * (16 << 20));
  CHECK_FALSE(closed);
  f.server->stop();
  sender.join();
}

TEST_CASE("more shapes that a proxy could read as two requests are refused, and the connection ends") {
  const Fixture f;
  const std::string inner = "GET /ping HTTP/1.1\r\nHost: h\r\n\r\n", chunks = "0\r\n\r\n";
  using std::string;
  for (const auto& bytes : {
           // Folded headers, whatever they are of.
           post("Transfer-Encoding:\r\n chunked\r\n", chunks + inner),
           post("Transfer-Encoding: chunked\r\n \r\n", chunks + inner),
           post("Content-Length:\r\n\t4\r\n", "abcd" + inner),
           post("Content-Length: 1\r\n 0\r\n", "abcd" + inner),
           post("X: a\r\n Content-Length: 4\r\nContent-Length: 0\r\n", inner),
           post("X:\r\n \r\nContent-Length: 0\r\n", inner),
           "POST /echo HTTP/1.1\r\n Host: h\r\nHost: h\r\nContent-Length: 0\r\n\r\n" + inner,
           // Line ends.
           post("X: a\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", inner),
           post("X: a\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", inner),
           post("Content-Length: 4\n", "abcd" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\nx\n0\n\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\r\nx\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\rx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1;a\nb\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1;a=\"\nb\"\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1;a=\"\rb\"\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0;a=\"\nb\"\r\n\r\n" + inner),
           // Names and values.
           post("Transfer-Encoding : chunked\r\n", chunks + inner),
           post(" Transfer-Encoding: chunked\r\n", chunks + inner),
           post("Transfer-Encoding: \"chunked\"\r\n", chunks + inner),
           post("Transfer-Encoding: chunked;q=1\r\n", chunks + inner),
           post("Transfer-Encoding: ,chunked\r\n", chunks + inner),
           post("Transfer-Encoding: chunked,\r\n", chunks + inner),
           post("Transfer-Encoding: identity\r\nContent-Length: 0\r\n", inner),
           post("Transfer-Encoding:\r\nContent-Length: 0\r\n", inner),
           post(string("Transfer-Encoding: chunked\0\r\n", 29), chunks + inner),
           post(string("Content-Length\0: 4\r\n", 20), "abcd" + inner),
           post("Content-Length:\r\n", inner),
           post("Content-Length: \r\nContent-Length: 4\r\n", "abcd" + inner),
           post("Content-Length: 4;4\r\n", "abcd" + inner),
           post("Content-Length: 4 4\r\n", "abcd" + inner),
           post("Content-Length: 4.0\r\n", "abcd" + inner),
           post("Content-Length: 4e0\r\n", "abcd" + inner),
           post("Content-Length: \xb4\r\n", "abcd" + inner),
           post(": 4\r\nContent-Length: 0\r\n", inner),
           post("nonsense\r\nContent-Length: 0\r\n", inner),
           // Chunks.
           post("Transfer-Encoding: chunked\r\n", "0x1\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1_\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "+1\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", " 1\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "\r\n1\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\r\nx0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "10000000000000001\r\nx\r\n0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 40\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "0\r\nTransfer-Encoding: chunked\r\n\r\n" + inner),
           // First lines.
           "POST /echo HTTP/1.1 \r\nHost: h\r\n\r\n" + inner,
           "POST /echo HTTP/01.1\r\nHost: h\r\n\r\n" + inner,
           "POST /echo http/1.1\r\nHost: h\r\n\r\n" + inner,
           "POST\t/echo HTTP/1.1\r\nHost: h\r\n\r\n" + inner,
           "POST /echo\rX HTTP/1.1\r\nHost: h\r\n\r\n" + inner,
           "PO\x01ST /echo HTTP/1.1\r\nHost: h\r\n\r\n" + inner,
           "POST /echo HTTP/1.2\r\nHost: h\r\n\r\n" + inner,
           "POST /echo HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n" + inner,
       }) {
    INFO(bytes);
    RawClient client(f.port);
    client.send(bytes);
    const auto answer = client.answer(kPatience);
    CHECK(status_of(answer) >= 400);
    CHECK(client.answer(kPatience).empty());  // closed: the second was not read as a request
  }
  CHECK(f.handled == 0);
}

TEST_CASE("a body where none is usual is read as one, not as the next request") {
  const Fixture f;
  RawClient client(f.port);
  const std::string inner = "GET /ping HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send("GET /ping HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(inner.size()) + "\r\n\r\n" + inner +
              post("Content-Length: 2\r\n", "ab"));
  CHECK(body_of(client.answer(kPatience)) == "pong");
  CHECK(body_of(client.answer(kPatience)) == "|ab|");
}

TEST_CASE("half-open streams end, and give their places back") {
  auto limits = Fixture::patient();
  limits.streams_max = 50;
  limits.stream_heartbeat = 100ms;
  const Fixture f(limits);
  const std::string open = "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n";
  const auto all_ended = [&] {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (f.streams > 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(5ms);
    return f.streams == 0;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<RawClient> clients;
    for (int i = 0; i < 50; ++i) {
      clients.emplace_back(f.port);
      clients.back().send(open);
      CHECK(clients.back().until("\r\n\r\n", kPatience).find("200 OK") != std::string::npos);
    }
    CHECK(status_of(f.ask(open)) == 503);
    CHECK(f.alive());
    if (round == 0)
      for (auto& client : clients) client.half_close();  // still reads, says no more
    if (round == 1)
      for (auto& client : clients) client.send("x");  // says what nobody asked for, then leaves
    if (round > 0) clients.clear();
    CHECK(all_ended());
  }
}

TEST_CASE("clients that vanish without a word lose their streams when they have acknowledged nothing for long enough") {
  auto limits = Fixture::patient();
  limits.stream_heartbeat = 50ms;
  limits.acknowledge_timeout = 1s;
  const Fixture hasty(limits);
  limits.acknowledge_timeout = 60s;
  const Fixture slow(limits);
  const std::string open = "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n";
  std::vector<RawClient> clients;
  for (const Fixture* f : {&hasty, &slow, &hasty}) {
    clients.emplace_back(f->port);
    clients.back().send(open);
    CHECK(clients.back().until(":\n\n", kPatience).find("200 OK") != std::string::npos);
  }
  clients[0].vanish();
  clients[1].vanish();
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = [&](const Fixture& f, int left) {
    while (f.streams > left && std::chrono::steady_clock::now() - begin < kPatience) std::this_thread::sleep_for(5ms);
    return f.streams == left;
  };
  CHECK(ended(hasty, 1));
  CHECK(std::chrono::steady_clock::now() - begin > 900ms);
  CHECK(hasty.alive());
  std::this_thread::sleep_for(2s);
  CHECK(hasty.streams == 1);  // the one that is still there acknowledges, though it reads nothing
  CHECK(slow.streams == 1);   // and without the limit's end the vanished one would be, too
}
