// The client against a real server that misbehaves.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "client/client.h"
#include "client/commands.h"
#include "daemon/http/http.h"

using namespace kbench;
using namespace kbench::client;
using namespace std::chrono_literals;

namespace {

Options options_for(std::uint16_t port, std::chrono::milliseconds patience = 5s) {
  Options options;
  options.url = "http://127.0.0.1:" + std::to_string(port) + "/";
  options.token = "secret";
  options.patience = patience;
  return options;
}

http::Response json(const std::string& body, int status = 200) {
  http::Response r;
  r.status = status;
  r.body = body;
  return r;
}

// Nobody listens there until somebody does.
std::uint16_t free_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(s, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  ::getsockname(s, reinterpret_cast<sockaddr*>(&at), &size);
  ::close(s);
  return ntohs(at.sin_port);
}

}  // namespace

TEST_CASE("a server that is away, then full, then there") {
  const auto port = free_port();
  std::atomic<int> asked{0};
  const auto server = http::Server::create({});
  server->route("GET", "/x", http::Access::open, [&](const http::Request& r) -> http::Response {
    CHECK(r.header("authorization") == "Bearer secret");
    if (++asked == 1) throw http::Problem{503, "full", "full", "Wait.", "", 1};
    return json("{\"a\":1}");
  });
  std::thread later([&] {
    std::this_thread::sleep_for(500ms);
    server->listen("127.0.0.1", port);
  });
  Api api(options_for(port));
  CHECK(api.ask("GET", "/x").body == "{\"a\":1}");
  CHECK(asked == 2);
  later.join();
  server->stop();
  Api hasty(options_for(port, 300ms));
  CHECK_THROWS_WITH(hasty.ask("GET", "/x"), Catch::Contains("is kbenchd running"));
  CHECK_THROWS_AS(hasty.ask("POST", "/x", "body", {}, false), Unreachable);
}

TEST_CASE("what the server refuses is said, not repeated") {
  std::atomic<int> asked{0};
  const auto server = http::Server::create({});
  server->route("POST", "/x", http::Access::open, [&](const http::Request&) -> http::Response {
    ++asked;
    throw http::Problem{422,
                        "bad",
                        "t",
                        "d",
                        "task",
                        0,
                        {{"task", "unknown task", "Did you mean b?"}, {"files", "none\x1b", "Send one."}}};
  });
  server->route("GET", "/html", http::Access::open, [](const http::Request&) { return json("<html>", 404); });
  Api api(options_for(server->listen("127.0.0.1", 0)));
  try {
    api.ask("POST", "/x", "{}");
    FAIL("not refused");
  } catch (const Refused& e) {
    CHECK(std::string(e.what()) == "refused\n  task: unknown task. Did you mean b?\n  files: none\\x1b. Send one.");
    CHECK(e.body.find("\"status\":422") != std::string::npos);
  }
  CHECK(asked == 1);
  CHECK_THROWS_WITH(api.ask("GET", "/html"), Catch::Contains("is the URL right"));
  CHECK_THROWS_AS(Api({"not a url", "", 1s}), UsageError);
  CHECK_THROWS_AS(Api({"ftp://host", "", 1s}), UsageError);
  CHECK(Api({"http://example.org", "t", 1s}).in_the_clear());
  CHECK_FALSE(Api({"https://example.org", "t", 1s}).in_the_clear());
}

TEST_CASE("a lost answer does not make a second submission; a lost stream goes on where it was") {
  std::mutex mutex;
  std::vector<std::string> keys, resumed;
  const auto server = http::Server::create({});
  server->route("POST", "/api/v1/submissions", http::Access::open, [&](const http::Request& r) -> http::Response {
    const std::scoped_lock lock(mutex);
    keys.emplace_back(r.header("Idempotency-Key"));
    if (keys.size() == 1) throw http::Problem{409, "in-flight", "being handled", "Wait.", "Idempotency-Key", 1};
    return json(R"({"id":"s-1","state":"queued"})", 202);
  });
  std::atomic<bool> done{false};
  server->route("GET", "/api/v1/submissions/{id}/events", http::Access::open, [&](const http::Request& r) {
    const std::scoped_lock lock(mutex);
    resumed.emplace_back(r.header("Last-Event-ID"));
    const int number = static_cast<int>(resumed.size());
    http::Response response;
    response.content_type = "text/event-stream";
    response.stream =
        http::Stream{[number, &done, sent = std::make_shared<bool>(false)]() -> std::pair<std::string, bool> {
                       if (*sent) throw std::runtime_error("this stream breaks");
                       *sent = true;
                       if (number == 3) done = true;
                       const std::string type = number == 3 ? "result" : "state";
                       return {http::event_text(number, type, R"({"attempt":1,"data":{"state":"measuring"}})"), false};
                     },
                     [](auto) {}};
    return response;
  });
  server->route("GET", "/api/v1/submissions/{id}", http::Access::open, [&](const http::Request&) {
    return json(done ? R"({"id":"s-1","state":"done","verdict":"incorrect","reward":0})"
                     : R"({"id":"s-1","state":"measuring"})");
  });
  Api api(options_for(server->listen("127.0.0.1", 0)));
  Submit given;
  given.files = {"test/unit/client/api_test.cpp"};  // CTest runs in the repository
  given.task = "t";
  given.wait = true;
  CHECK(submit(api, given, true) == kNotCorrect);
  REQUIRE(keys.size() == 2);
  CHECK(keys[0] == keys[1]);
  CHECK(keys[0].size() == 39);
  CHECK(resumed == std::vector<std::string>{"", "1", "2"});
}

TEST_CASE("where events cannot be had, looking now and then finds the end") {
  std::atomic<int> looks{0};
  const auto server = http::Server::create({});
  server->route("GET", "/api/v1/submissions/{id}/events", http::Access::open,
                [](const http::Request&) { return json("", 502); });
  server->route("GET", "/api/v1/submissions/{id}", http::Access::open, [&](const http::Request&) {
    return json(++looks < 3 ? R"({"state":"queued"})" : R"({"state":"cancelled"})");
  });
  Api api(options_for(server->listen("127.0.0.1", 0)));
  CHECK(wait(api, "s-1", true) == kCancelled);
  CHECK(looks == 3);
}

TEST_CASE(
    "a list that leads nowhere and an event nested without end are errors, not for ever and not the stack's end") {
  const auto server = http::Server::create({});
  std::atomic<int> pages{0};
  server->route("GET", "/api/v1/submissions", http::Access::open, [&](const http::Request&) {
    ++pages;
    return json(R"({"submissions":[],"next":"s-1"})");
  });
  server->route("GET", "/api/v1/submissions/{id}/events", http::Access::open, [](const http::Request&) {
    const std::size_t deep = 200'000;
    http::Response r;
    r.content_type = "text/event-stream";
    r.body = http::event_text(1, "state", "{\"data\":" + std::string(deep, '[') + std::string(deep, ']') + "}");
    return r;
  });
  Api api(options_for(server->listen("127.0.0.1", 0)));
  CHECK_THROWS_WITH(client::list(api, {}, true), Catch::Contains("in a circle"));
  CHECK(pages == 2);
  CHECK_THROWS_WITH(client::events(api, "s-1", 0, false), Catch::Contains("too deep"));
}
