#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "daemon/http/http.h"
#include "test/unit/http/client.h"
#include "test/unit/http/crowd.h"

using namespace kbench::http;
using namespace kbench::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

// A log of numbered events that streams follow; the test appends to it.
struct Log {
  std::mutex mutex;
  std::vector<std::string> entries;
  bool ended = false;
  std::vector<std::function<void()>> wakes;
  std::atomic<std::size_t> bytes_pulled{0};  // by all streams

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
              const std::scoped_lock lock(mutex);
              std::string text;
              // Like the real thing, at most so many bytes a pull, one event more at most.
              for (; *at < entries.size() && text.size() < kPieceBytes; ++*at)
                text += event_text(static_cast<std::int64_t>(*at) + 1, "e", entries[*at]);
              bytes_pulled += text.size();
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

TEST_CASE("readers that take nothing are dropped, and hold one piece of the log each at most") {
  constexpr std::size_t kReaders = 50, kEntries = 3000, kEntryBytes = 10'000;
  // What the kernel keeps for a socket is its own, and bounded by it: 4 MiB to be sent, unless it was set up otherwise.
  constexpr std::size_t kSocketBytes = 6 << 20;
  auto limits = Fixture::quick();
  limits.streams_max = kReaders + 1;
  limits.request_timeout = 60s;
  Fixture f(limits);
  std::vector<RawClient> slow;
  for (std::size_t i = 0; i < kReaders; ++i) slow.push_back(f.open("", 4096));
  {
    const std::scoped_lock lock(f.log.mutex);
    for (std::size_t i = 0; i < kEntries; ++i) f.log.entries.emplace_back(kEntryBytes, 'x');
  }
  const long before = resident_bytes();
  f.log.append("the end", true);
  long most = 0;
  for (std::size_t seen = 0; f.log.bytes_pulled == 0 || seen != f.log.bytes_pulled;) {  // until all have had enough
    seen = f.log.bytes_pulled;
    std::this_thread::sleep_for(500ms);
    most = std::max(most, resident_bytes() - before);
  }
  INFO(f.log.bytes_pulled / kReaders << " bytes pulled a reader, " << most / long{kReaders} << " bytes of memory");
  CHECK(f.log.bytes_pulled < kReaders * (kSocketBytes + 2 * kPieceBytes));  // of 30 MB that there are for each
  CHECK(most < kOverhead * static_cast<long>(kReaders * 3 * kPieceBytes));  // of 1500 MB: a piece, and as a chunk
  auto good = f.open();
  CHECK(has(good.until("the end", 20s), "the end"));
  f.server->stop();
}

TEST_CASE("a reader that takes nothing is dropped in time") {
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
