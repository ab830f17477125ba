#include <catch2/catch.hpp>

#include "kbench/events.h"
#include "listener.h"
#include "verifier/report/report.h"

using kbench::report::Reporter;
using nlohmann::json;
using Mood = Listener::Mood;
namespace events = kbench::events;

namespace {
double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
void send(Reporter& reporter, int count) {
  for (int i = 0; i < count; ++i) reporter.event(events::kProgress, {{"repetition", i}});
}
void require_all(const std::vector<json>& lines, std::int64_t count) {
  REQUIRE(static_cast<std::int64_t>(lines.size()) == count);
  for (std::int64_t i = 0; i < count; ++i) REQUIRE(lines[static_cast<std::size_t>(i)]["seq"] == i + 1);
}
}  // namespace

TEST_CASE("report: a listener gets every event, in order, in bounded batches") {
  Folder out, sockets;
  Listener listener(sockets.path);
  {
    auto reporter = Reporter::open(out.path, sockets.path);
    for (int i = 0; i < 40; ++i) reporter->event(events::kCompiled, {{"log", std::string(30'000, 'x')}});
  }  // flushes
  require_all(listener.received(), 40);
  CHECK(listener.largest_post() <= kbench::report::kBatchBytesMax);
}

TEST_CASE("report: a listener that comes late gets what it missed") {
  Folder out, sockets;
  auto reporter = Reporter::open(out.path, sockets.path);
  send(*reporter, 100);
  Listener listener(sockets.path);
  REQUIRE(listener.wait_for(101));
  send(*reporter, 5);
  REQUIRE(listener.wait_for(106));
  require_all(listener.received(), 105);
}

TEST_CASE("report: a restarted listener says where to go on") {
  Folder out, sockets;
  auto reporter = Reporter::open(out.path, sockets.path);
  {
    Listener first(sockets.path);
    send(*reporter, 10);
    REQUIRE(first.wait_for(11));
  }
  send(*reporter, 10);
  Listener second(sockets.path, Mood::good, 6);  // it remembers less than it had
  REQUIRE(second.wait_for(21));
  const auto lines = second.received();
  REQUIRE(lines.size() == 15);
  CHECK(lines.front()["seq"] == 6);
  CHECK(lines.back()["seq"] == 20);
}

TEST_CASE("report: a gap is filled from where the listener says") {
  Folder out, sockets;
  Listener listener(sockets.path);
  auto reporter = Reporter::open(out.path, sockets.path);
  send(*reporter, 10);
  REQUIRE(listener.wait_for(11));
  listener.mood(Mood::gap_once);
  send(*reporter, 1);
  for (int i = 0; i < 400 && listener.received().size() != 11; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  require_all(listener.received(), 11);
}

TEST_CASE("report: lost, refusing and senseless connections are tried again") {
  const Mood mood = GENERATE(Mood::drops_posts, Mood::refuses, Mood::nonsense);
  Folder out, sockets;
  Listener listener(sockets.path, mood);
  auto reporter = Reporter::open(out.path, sockets.path);
  send(*reporter, 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  CHECK(listener.received().empty());
  CHECK(listener.posts() < 10);  // it backs off
  listener.mood(Mood::good);
  REQUIRE(listener.wait_for(21));
  require_all(listener.received(), 20);
}

TEST_CASE("report: a listener that never answers delays nothing but the flush, and that by a bounded time") {
  Folder out, sockets;
  Listener listener(sockets.path, Mood::silent);
  auto start = std::chrono::steady_clock::now();
  auto reporter = Reporter::open(out.path, sockets.path);
  send(*reporter, 2000);
  CHECK(seconds_since(start) < 2);
  start = std::chrono::steady_clock::now();
  reporter.reset();
  CHECK(seconds_since(start) > kbench::report::kFlushSeconds - 0.5);
  CHECK(seconds_since(start) < kbench::report::kFlushSeconds + 1.5);
  require_all(lines_of(text_of(out.path + "/events.ndjson")), 2000);
}

TEST_CASE("report: a listener that already has more than there is waits without harm") {
  Folder out, sockets;
  Listener listener(sockets.path, Mood::good, 8);
  {
    auto reporter = Reporter::open(out.path, sockets.path);
    send(*reporter, 10);
  }
  const auto lines = listener.received();
  REQUIRE(lines.size() == 3);
  CHECK(lines.front()["seq"] == 8);
}
