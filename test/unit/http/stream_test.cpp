#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <thread>

#include "daemon/http/http.h"
#include "test/unit/http/client.h"

using namespace kbench::http;
using namespace kbench::test;
using namespace std::chrono_literals;

namespace {

// A log of numbered events that streams follow; the test appends to it.
struct Log {
  std::mutex mutex;
  std::vector<std::string> entries;
  bool ended = false;
  std::vector<std::function<void()>> wakes;
  std::atomic<int> pulls{0};

  void append(std::string entry, bool last = false) {
    std::vector<std::function<void()>> all;
    {
      const std::scoped_lock lock(mutex);
      entries.push_back(std::move(entry));
      ended = last;
      all = wakes;
    }
    for (const auto& wake : all) wake();
  }
  Stream follow(std::size_t after) {
    auto at = std::make_shared<std::size_t>(after);
    return {[this, at] {
              ++pulls;
              const std::scoped_lock lock(mutex);
              std::string text;
              // Like the real thing, at most so many events a pull.
              for (int n = 0; *at < entries.size() && n < 100; ++n, ++*at)
                text += event_text(static_cast<std::int64_t>(*at) + 1, "e", entries[*at]);
              return std::pair(text, ended && *at == entries.size());
            },
            [this](std::function<void()> wake) {
              const std::scoped_lock lock(mutex);
              wakes.push_back(std::move(wake));
            }};
  }
};

struct Fixture {
  explicit Fixture(Limits limits = quick()) : server(Server::create(limits)) {
    server->route("GET", "/log", Access::open, [this](const Request& r) {
      Response response;
      response.content_type = "text/event-stream";
      const auto last = r.header("Last-Event-ID");
      response.stream = log.follow(last.empty() ? 0 : std::stoul(std::string(last)));
      return response;
    });
    server->route("GET", "/throws", Access::open, [](const Request&) {
      Response response;
      response.stream = Stream{[]() -> std::pair<std::string, bool> { throw std::runtime_error("lost"); }, [](auto) {}};
      return response;
    });
    server->route("GET", "/slow", Access::open, [](const Request&) {
      Response response;
      response.stream = Stream{[pulls = 0]() mutable {
                                 if (++pulls == 2) std::this_thread::sleep_for(1500ms);
                                 return std::pair<std::string, bool>("data: x\n\n", pulls == 3);
                               },
                               [](auto) {}};
      return response;
    });
    port = server->listen("127.0.0.1", 0);
  }
  static Limits quick() {
    Limits limits;
    limits.stream_heartbeat = 400ms;
    limits.request_timeout = 700ms;
    limits.streams_max = 20;
    return limits;
  }
  RawClient open(const std::string& headers = "", int receive_buffer_bytes = 0) const {
    RawClient client(port, receive_buffer_bytes);
    client.send("GET /log HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n");
    client.until("\r\n\r\n");
    return client;
  }
  Log log;
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("events arrive as they happen, and the stream ends with the last") {
  Fixture f;
  f.log.append("first");
  auto client = f.open();
  CHECK(has(client.until("data: first\n\n"), "id: 1\nevent: e\ndata: first\n\n"));
  const auto begin = std::chrono::steady_clock::now();
  f.log.append("second");
  CHECK(has(client.until("data: second"), "id: 2\n"));
  CHECK(std::chrono::steady_clock::now() - begin < 200ms);  // pushed, not found at a heartbeat
  f.log.append("third", true);
  CHECK(has(client.until("\r\n0\r\n\r\n"), "data: third"));
  CHECK(client.closed());
}

TEST_CASE("a stream resumes behind Last-Event-ID, and beats while nothing happens") {
  Fixture f;
  for (const char* entry : {"a1", "a2", "a3"}) f.log.append(entry);
  auto client = f.open("Last-Event-ID: 2\r\n");
  auto seen = client.until(":\n\n");
  CHECK_FALSE(has(seen, "a2"));
  CHECK(has(seen, "id: 3\nevent: e\ndata: a3"));
  CHECK(has(seen, ":\n\n"));
}

TEST_CASE("HTTP/1.0 and HEAD") {
  Fixture f;
  f.log.append("only", true);
  RawClient old(f.port);
  old.send("GET /log HTTP/1.0\r\n\r\n");
  CHECK(old.closed());
  const auto all = old.until("x");
  CHECK(body_of(all) == "id: 1\nevent: e\ndata: only\n\n");
  RawClient head(f.port);
  head.send("HEAD /log HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(status_of(head.answer(2s, true)) == 200);
}

TEST_CASE("a stream whose source fails ends without its last chunk") {
  Fixture f;
  RawClient client(f.port);
  client.send("GET /throws HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(client.closed());
  CHECK_FALSE(has(client.until("x"), "0\r\n\r\n"));
}

TEST_CASE("a client does not lose its stream because the server is slow with the next piece") {
  Fixture f;
  RawClient client(f.port);
  client.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(has(client.until("\r\n0\r\n\r\n"), "\r\n0\r\n\r\n"));
}

TEST_CASE("streams are bounded, and a client that leaves frees its place at once") {
  Fixture f;
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(f.open());
  RawClient extra(f.port);
  extra.send("GET /log HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto refused = extra.answer();
  CHECK(status_of(refused) == 503);
  CHECK(refused.find("20 streams (http.streams_max)") != std::string::npos);
  clients.pop_back();
  std::this_thread::sleep_for(150ms);  // less than a heartbeat
  auto next = f.open();
  f.log.append("hello");
  CHECK(has(next.until("hello"), "hello"));
  for (auto& client : clients) CHECK(has(client.until("hello"), "hello"));
}

TEST_CASE("a reader that takes nothing is dropped and holds one piece of the log at most") {
  Fixture f;
  auto slow = f.open("", 4096);
  auto good = f.open();
  const std::string entry(10'000, 'x');
  for (int i = 0; i < 3000; ++i) f.log.append(entry);
  f.log.append("the end", true);
  CHECK(has(good.until("the end", 10s), "the end"));
  std::this_thread::sleep_for(1200ms);
  CHECK(slow.closed());
  CHECK(slow.until("never").size() < 29'000'000U);
}

TEST_CASE("wake from many threads, also after the stream and the server have gone") {
  std::vector<std::function<void()>> wakes;
  {
    Fixture f;
    std::vector<std::thread> writers;
    auto client = f.open();
    for (int t = 0; t < 4; ++t) {
      writers.emplace_back([&f] {
        for (int i = 0; i < 200; ++i) f.log.append("x");
      });
    }
    for (auto& writer : writers) writer.join();
    f.log.append("the end", true);
    const auto all = client.until("the end");
    CHECK(has(all, "id: 801\n"));
    CHECK(has(all, "id: 800\n"));
    CHECK(client.closed());
    f.log.append("after");
    wakes = f.log.wakes;
  }
  for (const auto& wake : wakes) wake();
}

TEST_CASE("stop ends open streams at once") {
  Fixture f;
  std::vector<RawClient> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(f.open());
  std::atomic<bool> over{false};
  std::thread writer([&] {
    while (!over) {
      f.log.append("x");
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  f.server->stop();
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  over = true;
  writer.join();
  for (auto& client : clients) {
    CHECK(client.closed());
    CHECK(has(client.until("\r\n0\r\n\r\n"), "\r\n0\r\n\r\n"));
  }
}
