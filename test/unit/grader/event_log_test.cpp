#include "daemon/grader/event_log.h"

#include <kbench/events.h>

#include <catch2/catch.hpp>
#include <vector>

using namespace kbench::grader;

namespace {

struct Taking {
  std::vector<std::string> seen;
  bool broken = false;
  EventLog log{[this](std::int64_t seq, const std::string& type, const std::string&) {
    if (broken) throw std::runtime_error("store");
    seen.push_back(std::to_string(seq) + type);
  }};
};

std::string line(int seq, const std::string& type) {
  return "{\"seq\":" + std::to_string(seq) + ",\"ms\":1,\"type\":\"" + type + "\"}\n";
}

}  // namespace

TEST_CASE("events are taken once and in order") {
  Taking taking;
  CHECK(taking.log.take(line(1, "started") + line(2, "phase")).next == 3);
  CHECK(taking.log.take(line(1, "started") + line(2, "phase") + line(3, "run")).next == 4);
  CHECK(taking.seen == std::vector<std::string>{"1started", "2phase", "3run"});
  CHECK(taking.log.take("").status == 200);
  CHECK(taking.log.take("\n\n").next == 4);
}

TEST_CASE("a gap is refused, what came before it is taken") {
  Taking taking;
  const auto answer = taking.log.take(line(1, "started") + line(3, "run"));
  CHECK(answer.status == 409);
  CHECK(answer.next == 2);
}

TEST_CASE("the last event is kept back, and nothing follows it") {
  for (const char* type : {"verdict", "infra_error"}) {
    Taking taking;
    CHECK(taking.log.take(line(1, "started") + line(2, type)).next == 3);
    CHECK(taking.seen.size() == 1);
    CHECK(taking.log.last()->find(type) != std::string::npos);
    CHECK(taking.log.last_seq() == 2);
    CHECK(taking.log.take(line(3, "run")).status == 400);
    CHECK(taking.log.take(line(2, type)).status == 200);
  }
}

TEST_CASE("malformed lines are refused") {
  for (const std::string bad :
       {"x", "[]", "{}", "{\"seq\":1}", "{\"seq\":\"1\",\"type\":\"a\"}", "{\"seq\":0,\"type\":\"a\"}",
        "{\"seq\":-1,\"type\":\"a\"}", "{\"seq\":1.5,\"type\":\"a\"}", "{\"seq\":1,\"type\":\"\"}",
        "{\"seq\":1,\"type\":\"A b\"}", "{\"seq\":1,\"type\":\"a\"", "\xff",
        "{\"seq\":1,\"type\":\"a\",\"x\":\"\xff\"}"}) {
    Taking taking;
    INFO(bad);
    CHECK(taking.log.take(bad).status == 400);
    CHECK(taking.log.next() == 1);
  }
}

TEST_CASE("a line and the number of events are bounded") {
  Taking taking;
  const std::string head = R"({"seq":1,"type":"a","x":")", tail = "\"}";
  const std::string longest =
      head + std::string(kbench::events::kEventBytesMax - head.size() - tail.size(), 'x') + tail;
  CHECK(taking.log.take(head + std::string(longest.size() - head.size() - 1, 'x') + tail).status == 400);
  CHECK(taking.log.take(longest).status == 200);
  for (int seq = 2; seq <= kbench::events::kEventsMax; ++seq) taking.log.take(line(seq, "progress"));
  CHECK(taking.log.next() == kbench::events::kEventsMax + 1);
  CHECK(taking.log.take(line(kbench::events::kEventsMax + 1, "progress")).status == 429);
}

TEST_CASE("an event that the store did not take comes again") {
  Taking taking;
  taking.broken = true;
  CHECK_THROWS(taking.log.take(line(1, "started")));
  taking.broken = false;
  CHECK(taking.log.next() == 1);
  CHECK(taking.log.take(line(1, "started")).next == 2);
  CHECK(taking.seen.size() == 1);
}
