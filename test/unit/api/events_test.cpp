#include <catch2/catch.hpp>
#include <thread>

#include "test/unit/api/fixture.h"

using namespace kbench;
using namespace kbench::test;
using namespace std::chrono_literals;

namespace {

RawClient follow(const Rest& rest, const std::string& id, const std::string& headers = "",
                 const std::string& query = "") {
  RawClient client(rest.port);
  client.send("GET /api/v1/submissions/" + id + "/events" + query + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " +
              Rest::kToken + "\r\n" + headers + "\r\n");
  return client;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a stream shows what was, then what happens, and ends with the result") {
  Rest rest;
  const auto id = rest.submitted();
  auto client = follow(rest, id);
  const auto start = client.until("\n\n");
  CHECK(has(start, "Content-Type: text/event-stream"));
  CHECK(has(start, "id: 1\nevent: state\n"));
  CHECK(has(start, "\"state\":\"queued\""));
  const auto begin = std::chrono::steady_clock::now();
  rest.grade(id, 7);
  const auto all = client.until("\r\n0\r\n\r\n");
  CHECK(std::chrono::steady_clock::now() - begin < 2s);  // woken, not found by the heartbeat of 5 s
  CHECK(has(all, "event: started\ndata: {\"seq\":"));
  CHECK(has(all, "\"type\":\"started\",\"data\":{\"seq\":1,\"ms\":2,\"type\":\"started\"}}"));
  CHECK(has(all, "event: result\n"));
  CHECK(client.closed());
}

TEST_CASE("a stream is resumed without loss or repetition") {
  Rest rest;
  const auto id = rest.submitted();
  rest.grade(id, 7);
  const auto last = rest.store->events(id, 0, 100).back().seq;
  auto whole = follow(rest, id);
  const auto all = whole.until("\r\n0\r\n\r\n");
  for (std::int64_t seq = 1; seq <= last; ++seq) CHECK(has(all, "id: " + std::to_string(seq) + "\n"));
  for (const auto& [headers, query] : {std::pair<std::string, std::string>{"Last-Event-ID: 2\r\n", ""},
                                       {"", "?after=2"},
                                       {"Last-Event-ID: 2\r\n", "?after=0"}}) {
    auto rest_of_it = follow(rest, id, headers, query);
    const auto text = rest_of_it.until("\r\n0\r\n\r\n");
    CHECK_FALSE(has(text, "id: 2\n"));
    CHECK(has(text, "id: 3\n"));
    CHECK(has(text, "event: result\n"));
  }
  CHECK(status_of(follow(rest, id, "Last-Event-ID: " + std::to_string(last) + "\r\n").answer()) == 204);
  CHECK(status_of(follow(rest, id, "", "?since=1").answer()) == 400);
  CHECK(status_of(follow(rest, "s-none").answer()) == 404);
}

TEST_CASE("an id of no event of the submission is refused, whether it goes on or has ended") {
  Rest rest;
  const auto id = rest.submitted();
  const auto check_refused = [&](const std::string& headers, const std::string& query, const std::string& field) {
    INFO(headers << query);
    const auto answer = follow(rest, id, headers, query).answer();
    CHECK(status_of(answer) == 400);
    CHECK(has(answer, "Content-Type: application/problem+json\r\n"));
    CHECK(has(answer, "\"field\":\"" + field + "\""));
  };
  for (const bool ended : {false, true}) {
    const auto last = rest.store->events(id, 0, 100).back().seq;
    for (const std::string& number :
         {std::to_string(last + 1), std::string("9223372036854775807"), std::string("9223372036854775808"),
          std::string("-1"), std::string("+1"), std::string("1.0"), std::string("x"), std::string("0x1")}) {
      check_refused("Last-Event-ID: " + number + "\r\n", "", "Last-Event-ID");
      check_refused("Last-Event-ID: " + number + "\r\n", "?after=1", "Last-Event-ID");
      check_refused("", "?after=" + (number[0] == '+' ? "%2B1" : number), "after");
    }
    check_refused("", "?after=", "after");
    CHECK(has(follow(rest, id, "Last-Event-ID: 0\r\n").until("\n\n"), "id: 1\n"));
    CHECK(has(follow(rest, id, "Last-Event-ID:\r\n").until("\n\n"), "id: 1\n"));  // none, as in a browser
    if (ended) break;
    auto goes_on = follow(rest, id, "Last-Event-ID: " + std::to_string(last) + "\r\n");
    goes_on.until("\r\n\r\n");
    rest.grade(id, 7);
    const auto all = goes_on.until("\r\n0\r\n\r\n");
    CHECK(has(all, "id: " + std::to_string(last + 1) + "\n"));
    CHECK_FALSE(has(all, "id: " + std::to_string(last) + "\n"));
  }
}

TEST_CASE("more events than a pull takes") {
  Rest rest;
  const auto id = rest.submitted();
  store::Wanted wanted;
  wanted.grader = "test";
  wanted.devices = {"cpu"};
  wanted.lease = 30s;
  const auto lease = rest.store->claim(wanted);
  REQUIRE(lease);
  auto client = follow(rest, id);
  const std::string filler(20'000, 'x');
  for (int i = 1; i <= 150; ++i) {
    REQUIRE(rest.store->append_event(id, lease->attempt, i, "progress",
                                     "{\"n\":" + std::to_string(i) + ",\"t\":\"" + filler + "\"}"));
  }
  CHECK(has(client.until("{\"n\":150,", 10s), "{\"n\":150,"));
  rest.ask("DELETE", "/api/v1/submissions/" + id);
  CHECK(has(client.until("event: cancel\n"), "event: cancel\n"));
}

TEST_CASE("many watchers, some of whom leave; the daemon stops") {
  auto rest = std::make_unique<Rest>();
  const auto id = rest->submitted();
  std::vector<RawClient> clients, leaving;
  for (int i = 0; i < 20; ++i) clients.push_back(follow(*rest, id));
  for (int i = 0; i < 20; ++i) leaving.push_back(follow(*rest, id));
  for (auto& client : clients) client.until("\n\n");
  for (auto& client : leaving) client.until("\n\n");
  leaving.clear();
  for (int i = 0; i < 100 && rest->queue->hub().subscriptions() > 20; ++i) std::this_thread::sleep_for(20ms);
  CHECK(rest->queue->hub().subscriptions() == 20);
  rest->ask("DELETE", "/api/v1/submissions/" + id);
  for (auto& client : clients) CHECK(has(client.until("event: result\n"), "event: result\n"));
  auto open = follow(*rest, rest->submitted());
  open.until("\n\n");
  const auto begin = std::chrono::steady_clock::now();
  rest.reset();
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  CHECK(open.closed());
}
