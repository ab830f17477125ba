#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

#include "daemon/http/http.h"
#include "test/unit/http/client.h"
#include "test/unit/http/crowd.h"

using namespace kbench::http;
using namespace kbench::test;
using namespace std::chrono_literals;

namespace {

struct Fixture {
  explicit Fixture(const Limits& limits = quick()) : server(Server::create(limits)) {
    server->authenticate([](std::string_view token) -> std::optional<std::string> {
      if (token == "secret") return "somebody";
      return std::nullopt;
    });
    server->route("GET", "/ping", Access::open, [](const Request&) { return text("pong"); }, Work::quick);
    server->route("GET", "/who", Access::token, [](const Request& r) { return text(r.submitter); });
    server->route("POST", "/echo", Access::open, [this](const Request& r) {
      ++handled;
      return text(r.path + "|" + r.body);
    });
    server->route("GET", "/values/{a}/{b}", Access::open, [](const Request& r) {
      return text(r.path_values.at("a") + "," + r.path_values.at("b") + "," + r.query.at("q") + "," +
                  std::string(r.header("X-Thing")));
    });
    server->route("GET", "/big", Access::open, [](const Request&) { return text(std::string(8 << 20, 'x')); });
    server->route("GET", "/slow", Access::open, [](const Request&) {
      std::this_thread::sleep_for(300ms);
      return text("late");
    });
    server->route("GET", "/throws", Access::open,
                  [](const Request&) -> Response { throw std::runtime_error("a secret"); });
    server->route("GET", "/problem", Access::open,
                  [](const Request&) -> Response { throw Problem{409, "t", "title", "fix", "field"}; });
    server->route("GET", "/bad-header", Access::open, [](const Request&) {
      auto r = text("x");
      r.headers["X"] = "a\nb";
      return r;
    });
    port = server->listen("127.0.0.1", 0);
  }
  static Limits quick() {
    Limits limits;
    limits.header_bytes_max = 2048;
    limits.body_bytes_max = 10'000;
    limits.idle_timeout = 1500ms;
    limits.request_timeout = 700ms;
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
    return client.answer();
  }
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
  std::atomic<int> handled{0};
};

std::string get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + more + "\r\n";
}
std::string post(const std::string& headers, const std::string& body) {
  return "POST /echo HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n" + body;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("requests, keep-alive and pipelining") {
  const Fixture f;
  RawClient client(f.port);
  client.send(get("/ping"));
  CHECK(body_of(client.answer()) == "pong");
  client.send(get("/values/1/b%20c?q=%C3%A4", "x-thing:  v \r\n"));
  CHECK(body_of(client.answer()) == "1,b c,\xc3\xa4,v");
  client.send(post("Content-Length: 3\r\n", "abc") + get("/slow") + get("/ping") +
              post("Transfer-Encoding: chunked\r\n", "2\r\nxy\r\n3;ext=1\r\nz12\r\n0\r\n\r\n"));
  CHECK(body_of(client.answer()) == "/echo|abc");
  CHECK(body_of(client.answer()) == "late");
  CHECK(body_of(client.answer()) == "pong");
  CHECK(body_of(client.answer()) == "/echo|xyz12");
  client.send(get("/ping", "Connection: close\r\n"));
  CHECK(has(client.answer(), "Connection: close\r\n"));
  CHECK(client.closed());
}

TEST_CASE("HEAD, HTTP/1.0, absolute form") {
  const Fixture f;
  RawClient client(f.port);
  client.send("HEAD /ping HTTP/1.1\r\nHost: h\r\n\r\n" + get("http://h/ping"));
  const auto head = client.answer(5s, true);
  CHECK(has(head, "Content-Length: 4\r\n"));
  CHECK(body_of(client.answer()) == "pong");
  RawClient old(f.port);
  old.send("GET /ping HTTP/1.0\r\n\r\n");
  CHECK(body_of(old.answer()) == "pong");
  CHECK(old.closed());
  RawClient kept(f.port);
  kept.send("GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(has(kept.answer(), "Connection: keep-alive"));
}

TEST_CASE("tokens") {
  const Fixture f;
  const auto refused = f.ask(get("/who"));
  CHECK(status_of(refused) == 401);
  CHECK(has(refused, "WWW-Authenticate: Bearer\r\n"));
  CHECK(has(refused, "\"field\":\"Authorization\""));
  CHECK(status_of(f.ask(get("/who", "Authorization: Bearer wrong\r\n"))) == 401);
  CHECK(status_of(f.ask(get("/who", "Authorization: Basic secret\r\n"))) == 401);
  CHECK(body_of(f.ask(get("/who", "authorization: bearer secret\r\n"))) == "somebody");
}

TEST_CASE("faults are problem+json") {
  const Fixture f;
  for (const auto& [bytes, status, part] : std::vector<std::tuple<std::string, int, std::string>>{
           {get("/nothing"), 404, "no-such-path"},
           {"DELETE /ping HTTP/1.1\r\nHost: h\r\n\r\n", 405, "Allow: GET, HEAD\r\n"},
           {get("/problem"), 409, "\"detail\":\"fix\""},
           {get("/throws"), 500, "the server failed"},
           {get("/a/../b"), 400, "\"field\":\"path\""},
           {get("/ping?a=1&a=2"), 400, "\"field\":\"a\""},
           {get("/ping", "X: " + std::string(3000, 'x') + "\r\n"), 431, "header-too-large"},
           {get("/ping", "X: " + std::string(3000, 'x') + "\r\n"), 431,
            "2048 bytes (http.header_bytes_max) and 100 fields (http.header_fields_max)"},
           {post("Content-Length: 10001\r\n", ""), 413, "body-too-large"},
           {post("Content-Length: 10001\r\n", ""), 413, "10000 bytes (http.body_bytes_max)"},
           {post("Content-Length: 3\r\n", "ab"), 408, "700 ms (http.request_timeout)"},
           {post("Expect: 200-ok\r\nContent-Length: 1\r\n", "x"), 417, "Expect"},
           {"GET /ping HTTP/2.0\r\nHost: h\r\n\r\n", 505, "bad-version"}}) {
    const auto answer = f.ask(bytes);
    INFO(bytes << "\n" << answer);
    CHECK(status_of(answer) == status);
    CHECK(has(answer, "Content-Type: application/problem+json"));
    CHECK(has(answer, part));
    CHECK_FALSE(has(answer, "secret"));
  }
  CHECK(f.ask(get("/bad-header")).empty());  // a handler's bug costs its own connection only
  CHECK(body_of(f.ask(get("/ping"))) == "pong");
}

TEST_CASE("what could be two requests to a proxy is refused, and the connection ends") {
  const Fixture f;
  const std::string inner = "GET /ping HTTP/1.1\r\nHost: h\r\n\r\n";
  for (const auto& bytes : {
           post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n" + inner),
           post("Content-Length: 4\r\nContent-Length: 5\r\n", "abcd" + inner),
           post("Content-Length: 4\r\nContent-Length: 4\r\n", "abcd" + inner),
           post("Content-Length: 4, 4\r\n", "abcd" + inner),
           post("Content-Length: +4\r\n", "abcd" + inner),
           post("Content-Length: -1\r\n", inner),
           post("Content-Length: 0x4\r\n", "abcd" + inner),
           post("Content-Length: 18446744073709551617\r\n", "a" + inner),
           post("Content-Length : 4\r\n", "abcd" + inner),
           post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n" + inner),
           post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + inner),
           post("Transfer-Encoding:\x0b"
                "chunked\r\n",
                "0\r\n\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "zz\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "-1\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff1\r\n" + inner),
           post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n" + inner),
           std::string("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") + inner,
           std::string("POST /echo HTTP/1.1\r\nContent-Length: 0\r\n\r\n") + inner,
           std::string("POST /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n") + inner,
           std::string("POST /echo HTTP/1.1\nHost: a\nContent-Length: 0\n\n") + inner,
           std::string("POST /echo  HTTP/1.1\r\nHost: a\r\n\r\n") + inner,
           std::string("POST /echo\r\n\r\n") + inner,
           std::string("\x16\x03\x01\x02 TLS hello\r\n\r\n"),
       }) {
    INFO(bytes);
    RawClient client(f.port);
    client.send(bytes);
    const auto answer = client.answer();
    CHECK(status_of(answer) >= 400);
    CHECK(client.answer(1500ms).empty());
  }
  CHECK(f.handled == 0);
}

TEST_CASE("bodies: limits, Expect, truncation") {
  Fixture f;
  CHECK(status_of(f.ask(post("Content-Length: 10000\r\n", std::string(10'000, 'x')))) == 200);
  std::string chunks;
  for (int i = 0; i < 11; ++i) chunks += "3e8\r\n" + std::string(1000, 'x') + "\r\n";
  CHECK(status_of(f.ask(post("Transfer-Encoding: chunked\r\n", chunks))) == 413);

  RawClient patient(f.port);
  patient.send(post("Content-Length: 3\r\nExpect: 100-continue\r\n", ""));
  CHECK(has(patient.answer(), "HTTP/1.1 100 Continue"));
  patient.send("abc");
  CHECK(body_of(patient.answer()) == "/echo|abc");
  RawClient warned(f.port);  // told before it has sent anything
  warned.send(post("Content-Length: 10001\r\nExpect: 100-continue\r\n", ""));
  CHECK(status_of(warned.answer()) == 413);

  const int before = f.handled;
  RawClient cut(f.port);
  cut.send(post("Content-Length: 10\r\n", "abc"));
  cut.half_close();
  CHECK(cut.answer(1s).empty());
  CHECK(f.handled == before);
}

TEST_CASE("an oversize body does not stop the answer from arriving") {
  const Fixture f;
  RawClient client(f.port);
  std::thread writer([&] { client.send(post("Content-Length: 3000000\r\n", std::string(3'000'000, 'x'))); });
  CHECK(status_of(client.answer()) == 413);
  writer.join();
}

TEST_CASE("all bodies together are bounded") {
  auto limits = Fixture::quick();
  limits.bodies_bytes_max = 15'000;
  limits.request_timeout = 5s;
  const Fixture f(limits);
  RawClient first(f.port);
  first.send(post("Content-Length: 10000\r\n", std::string(9'000, 'x')));
  std::this_thread::sleep_for(100ms);
  const auto refused = f.ask(post("Content-Length: 8000\r\n", std::string(8'000, 'y')));
  CHECK(status_of(refused) == 503);
  CHECK(has(refused, "15000 bytes (http.bodies_bytes_max)"));
  CHECK(has(refused, "Retry-After: "));
  first.send(std::string(1'000, 'x'));
  CHECK(status_of(first.answer()) == 200);
  CHECK(status_of(f.ask(post("Content-Length: 8000\r\n", std::string(8'000, 'y')))) == 200);
}

TEST_CASE("slowloris: hundreds of requests that trickle in end in time, and others are served at once meanwhile") {
  constexpr int kSlow = 500;
  allow_connections(2 * kSlow);
  auto limits = Fixture::quick();
  limits.request_timeout = 3s;
  const Fixture f(limits);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<RawClient> slow;
  for (int i = 0; i < kSlow; ++i) slow.emplace_back(f.port);
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread trickle([&] {
    const std::string head = "GET /ping HTTP/1.1\r\nA: " + std::string(1000, 'b');
    for (std::size_t at = 0; !stop; ++at, ++rounds) {
      for (auto& client : slow) client.send(head.substr(at % head.size(), 1));
      std::this_thread::sleep_for(10ms);
    }
  });
  while (rounds < 3) std::this_thread::sleep_for(1ms);
  std::vector<double> waits;  // seconds
  for (int i = 0; i < 50; ++i) {
    const auto asked = std::chrono::steady_clock::now();
    CHECK(body_of(f.ask(get(i % 2 == 0 ? "/ping" : "/values/1/2?q=3"))) != "");
    waits.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count());
  }
  CHECK(slow[0].answer(0ms).empty());  // none has been told to go yet: all were there meanwhile
  std::sort(waits.begin(), waits.end());
  INFO("seconds: median " << waits[25] << ", longest " << waits.back());
  CHECK(waits[25] < kOverhead * 0.1);
  CHECK(waits.back() < kOverhead);
  int told = 0;
  for (auto& client : slow) told += status_of(client.answer(30s)) == 408;
  CHECK(told == kSlow);
  for (auto& client : slow) CHECK(client.closed());
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
  stop = true;
  trickle.join();
  const Fixture hasty;
  RawClient body(hasty.port);  // the same for a body that never ends
  body.send(post("Content-Length: 100\r\n", "abc"));
  CHECK(status_of(body.answer()) == 408);
}

TEST_CASE("idle and half-open connections end in time") {
  const Fixture f;
  RawClient silent(f.port), kept(f.port);
  kept.send(get("/ping"));
  CHECK(body_of(kept.answer()) == "pong");
  CHECK(silent.closed(3s));
  CHECK(kept.closed(3s));
}

TEST_CASE("a client that does not take its answer is dropped") {
  const Fixture f;
  RawClient lazy(f.port, 4096);
  lazy.send(get("/big"));
  std::this_thread::sleep_for(1500ms);
  CHECK(lazy.closed());
  CHECK(lazy.until("never").size() < 8U << 20);
}

TEST_CASE("a thousand idle connections; for one too many the one idle longest gives way") {
  allow_connections(2 * 1000);
  auto limits = Fixture::quick();
  limits.connections_max = 1001;
  limits.idle_timeout = 20s;
  const Fixture f(limits);
  std::vector<RawClient> idle;
  for (int i = 0; i < 1000; ++i) idle.emplace_back(f.port);
  {
    RawClient last(f.port);
    last.send(get("/ping"));
    CHECK(body_of(last.answer()) == "pong");
    RawClient extra(f.port);
    extra.send(get("/ping"));
    CHECK(body_of(extra.answer()) == "pong");
    CHECK(idle[0].closed());
  }
  for (auto& client : idle) client.send(get("/ping"));
  int served = 0;
  for (auto& client : idle) served += body_of(client.answer()) == "pong";
  CHECK(served == 999);
}

TEST_CASE("quick handlers do not queue behind slow ones") {
  auto limits = Fixture::quick();
  limits.handler_threads = 2;
  const Fixture f(limits);
  std::vector<RawClient> busy;
  for (int i = 0; i < 6; ++i) busy.emplace_back(f.port);
  for (auto& client : busy) client.send(get("/slow"));
  std::this_thread::sleep_for(50ms);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(body_of(f.ask(get("/ping"))) == "pong");
  CHECK(std::chrono::steady_clock::now() - begin < 250ms);
  for (auto& client : busy) CHECK(body_of(client.answer()) == "late");
}

TEST_CASE("stop: running requests end, idle connections close, a port that is taken is named") {
  auto f = std::make_unique<Fixture>();
  RawClient idle(f->port), busy(f->port);
  CHECK_THROWS_WITH(Server::create({})->listen("127.0.0.1", f->port), Catch::Contains("in use"));
  CHECK_THROWS_WITH(Server::create({})->listen("not-an-address", 0), Catch::Contains("not-an-address"));
  busy.send(get("/slow"));
  std::this_thread::sleep_for(100ms);
  const auto begin = std::chrono::steady_clock::now();
  f->server->stop();
  f->server->stop();
  const auto answer = busy.answer();
  CHECK(body_of(answer) == "late");
  CHECK(has(answer, "Connection: close"));
  CHECK(idle.closed());
  CHECK(std::chrono::steady_clock::now() - begin < 2500ms);
  CHECK_THROWS(RawClient(f->port));
}
