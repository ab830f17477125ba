#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kbench/events.h"
#include "listener.h"
#include "verifier/report/report.h"

using nlohmann::json;
namespace report = kbench::report;
namespace events = kbench::events;

TEST_CASE("report: without a socket folder events are only spooled, numbered from 1") {
  Folder out;
  {
    auto reporter = report::Reporter::open(out.path, "");
    reporter->event(events::kStarted, {{"version", "1"}});
    reporter->event(events::kPhase, {{"phase", "measure"}});
    const auto lines = lines_of(text_of(out.path + "/events.ndjson"));  // each line is out at once
    REQUIRE(lines.size() == 2);
    CHECK(lines[0]["seq"] == 1);
    CHECK(lines[0]["type"] == "started");
    CHECK(lines[1]["seq"] == 2);
    CHECK(lines[1]["phase"] == "measure");
    CHECK(lines[1]["ms"].is_number_integer());
  }
}

TEST_CASE("report: a line at the limit is whole, one over it is cut and marked") {
  Folder out;
  auto reporter = report::Reporter::open(out.path, "");
  const std::string frame = "{\"log\":\"\",\"ms\":0,\"seq\":1,\"type\":\"compiled\"}\n";
  const std::string longest(events::kEventBytesMax - frame.size() - 8, 'x');  // 8: ms and seq may take more digits
  reporter->event(events::kCompiled, {{"log", longest}});
  reporter->event(events::kCompiled, {{"log", longest + std::string(100, 'y')}});
  reporter->event(events::kCompiled, {{"logs", json::array({std::string(70'000, 'a'), std::string(70'000, '\x01')})}});
  reporter->event(events::kCompiled, {{"many", std::vector<int>(70'000, 1)}});
  const std::string text = text_of(out.path + "/events.ndjson");
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) CHECK(line.size() + 1 <= events::kEventBytesMax);
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["log"] == longest);
  CHECK(!lines[0].contains("cut"));
  CHECK(lines[1]["cut"] == true);
  CHECK(lines[1]["log"].get<std::string>().find("bytes cut]") != std::string::npos);
  CHECK(lines[2]["cut"] == true);
  CHECK(lines[3]["cut"] == true);
  CHECK(lines[3]["type"] == "compiled");
}

TEST_CASE("report: text that is not UTF-8 does not break a line") {
  Folder out;
  auto reporter = report::Reporter::open(out.path, "");
  reporter->event(events::kVerdict, {{"reason", "\xff\xfe bad"}});
  CHECK(lines_of(text_of(out.path + "/events.ndjson")).size() == 1);
}

TEST_CASE("report: progress stops before the schema's limit, the verdict is always the last") {
  Folder out;
  auto reporter = report::Reporter::open(out.path, "");
  for (int i = 0; i < events::kEventsMax + 10; ++i) reporter->event(events::kProgress, {});
  for (int i = 0; i < report::kEndReserve + 10; ++i) reporter->event(events::kPhase, {{"phase", "odd"}});
  reporter->event(events::kVerdict, {{"verdict", "correct"}});
  const auto lines = lines_of(text_of(out.path + "/events.ndjson"));
  REQUIRE(static_cast<int>(lines.size()) == events::kEventsMax);
  CHECK(lines[static_cast<std::size_t>(events::kEventsMax - report::kEndReserve - 1)]["type"] == "progress");
  CHECK(lines[static_cast<std::size_t>(events::kEventsMax - report::kEndReserve)]["type"] == "phase");
  CHECK(lines.back()["type"] == "verdict");
  CHECK(lines.back()["seq"] == events::kEventsMax);
}

TEST_CASE("report: reward.json holds a finite number and nothing else") {
  Folder out;
  report::write_reward(out.path, 12.5);
  CHECK(text_of(out.path + "/reward.json") == "{\"reward\":12.5}\n");
  report::write_reward(out.path, 0);
  CHECK(json::parse(text_of(out.path + "/reward.json"))["reward"] == 0);
  CHECK_THROWS_AS(report::write_reward(out.path, std::nan("")), std::invalid_argument);
  CHECK_THROWS_AS(report::write_reward(out.path, std::numeric_limits<double>::infinity()), std::invalid_argument);
  CHECK_THROWS_AS(report::write_reward(out.path, -1), std::invalid_argument);
  CHECK(json::parse(text_of(out.path + "/reward.json"))["reward"] == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(out.path), {}) == 1);  // no temporary file left
}

TEST_CASE("report: what an agent planted is removed and never written through") {
  Folder out, elsewhere;
  const std::string victim = elsewhere.path + "/victim";
  std::ofstream(victim) << "mine";
  std::filesystem::create_symlink(victim, out.path + "/reward.json");
  std::filesystem::create_symlink(victim, out.path + "/.reward.json.tmp");
  std::filesystem::create_symlink(victim, out.path + "/events.ndjson");
  std::filesystem::create_directory(out.path + "/details.json");
  std::ofstream(out.path + "/details.json/deep") << "x";
  std::ofstream(out.path + "/reward.txt") << "1";
  SECTION("removed") {
    report::remove_results(out.path);
    for (const char* name : {"reward.json", "reward.txt", "details.json", "events.ndjson"}) {
      CHECK(!std::filesystem::exists(std::filesystem::symlink_status(out.path + "/" + name)));
    }
  }
  SECTION("written over") {
    report::write_reward(out.path, 3);
    report::write_details(out.path, {{"a", "\xff"}});
    report::write_infra_error(out.path, "device", "lost");
    report::Reporter::open(out.path, "")->event(events::kStarted, {});
    CHECK(!std::filesystem::is_symlink(out.path + "/reward.json"));
    CHECK(json::parse(text_of(out.path + "/reward.json"))["reward"] == 3);
    CHECK(json::parse(text_of(out.path + "/details.json")).contains("a"));
    CHECK(json::parse(text_of(out.path + "/infra_error.json"))["cause"] == "device");
  }
  CHECK(text_of(victim) == "mine");
}
