// Rule 3: from start to exit. And kill, remove, logs.
#include <thread>

#include "test/unit/engine/support.h"

using namespace kbench::test;

namespace {

FakeEnd until_killed(const FakeJob&, std::stop_token killed) {
  while (!killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
  return {};
}

int index_of(const std::vector<std::string>& list, const std::string& end) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].ends_with(end)) return static_cast<int>(i);
  return -1;
}

}  // namespace

TEST_CASE("rule 3: the wait is registered before the start") {
  Stage stage;
  stage.fake.run([](const FakeJob&, std::stop_token) { return FakeEnd{.exit_code = 7, .oom_killed = true}; });
  Run run = stage.engine.start(stage.engine.create(stage.spec()));
  const auto ended = run.wait(kPatience);
  REQUIRE(ended);
  CHECK(ended->exit_code == 7);
  CHECK(ended->oom_killed);
  CHECK_FALSE(run.disturbed());
  const auto requests = stage.fake.requests();
  REQUIRE(index_of(requests, "/wait") >= 0);
  CHECK(index_of(requests, "/wait") < index_of(requests, "/start"));
}

TEST_CASE("rule 3: a start that fails cancels its wait") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.script("POST /containers/" + id + "/start", fake_error(500, "could not select device driver \"nvidia\""));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(error_of([&] { stage.engine.start(id); }).kind ==
        Kind::failed);  // and does not hang in the wait, which never ends
  CHECK(std::chrono::steady_clock::now() - begin < kPatience);
}

TEST_CASE("rule 3: no start without a registered wait") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.script("POST /containers/" + id + "/wait", fake_error(500, "boom"));
  CHECK(error_of([&] { stage.engine.start(id); }).kind == Kind::failed);
  Options options = stage.quick();
  options.inspect_timeout = kShort;
  Engine hasty(options);
  stage.fake.script("POST /containers/" + id + "/wait", FakeReply{.delay = 3 * kShort});
  CHECK(error_of([&] { hasty.start(id); }).kind == Kind::timeout);
  CHECK(stage.fake.count("POST /containers/" + id + "/start") == 0);
}

TEST_CASE("rule 3: a broken wait is followed by an inspection") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  const auto broken = [&](FakeReply reply) {
    stage.fake.run([&](const FakeJob&, std::stop_token) {
      std::this_thread::sleep_for(milliseconds(50));
      return FakeEnd{.exit_code = 3};
    });
    stage.fake.script("POST /containers/" + id + "/wait", reply);
    Run run = stage.engine.start(id);
    const auto ended = run.wait(kPatience);
    REQUIRE(ended);
    CHECK(ended->exit_code == 3);
    CHECK(run.disturbed());
  };
  SECTION("cut") { broken({.body = R"({"StatusCode":0})", .chunk_bytes = 1, .cut_after = 5}); }
  SECTION("text of a proxy") { broken({.body = "upstream gone"}); }
  SECTION("empty") { broken({.body = ""}); }
  SECTION("too long") { broken({.body = std::string(5000, ' ') + R"({"StatusCode":0})"}); }
  SECTION("lost at once, the second wait asks for not-running, since next-exit would hang") {
    stage.fake.script("POST /containers/" + id + "/wait", FakeReply{.body = ""});
    stage.fake.run([](const FakeJob&, std::stop_token) { return FakeEnd{.exit_code = 4}; });
    Run run = stage.engine.start(id);
    CHECK(run.wait(kPatience)->exit_code == 4);
  }
}

TEST_CASE("rule 3: a wait that answers while the container runs is not believed") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.run(until_killed);
  stage.fake.script("POST /containers/" + id + "/wait", FakeReply{.body = R"({"StatusCode":0})"});
  Run run = stage.engine.start(id);
  CHECK_FALSE(run.wait(milliseconds(100)));
  stage.engine.kill(id);
  CHECK(run.wait(kPatience)->exit_code == 137);
}

TEST_CASE("a restart of the Engine is survived; live-restore keeps the container") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.run(until_killed);
  Run run = stage.engine.start(id);
  stage.fake.restart(milliseconds(50), true);
  CHECK_FALSE(run.wait(milliseconds(200)));
  CHECK(run.disturbed());
  stage.fake.restart(milliseconds(50), false);
  const auto ended = run.wait(kPatience);
  REQUIRE(ended);
  CHECK(ended->exit_code == 137);
}

TEST_CASE("waiting ends at its deadline, at a stop, and when the container is removed") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.run(until_killed);
  Run run = stage.engine.start(id);
  CHECK_FALSE(run.wait(milliseconds(20)));
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stop.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(run.wait(kPatience, stop.get_token()));
  CHECK(std::chrono::steady_clock::now() - begin < kPatience);
  stage.engine.remove(id);
  CHECK(error_of([&] { run.wait(kPatience); }).kind == Kind::not_found);
}

TEST_CASE("a start whose answer is lost still happened") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.script("POST /containers/" + id + "/start", [&](const FakeRequest&) {
    Engine other(stage.quick());
    other.start(id);
    return FakeReply{.drop = true};
  });
  CHECK(stage.engine.start(id).wait(kPatience)->exit_code == 0);
}

TEST_CASE("a start during which the Engine goes away is asked about when it is back") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  std::jthread restarter;
  stage.fake.script("POST /containers/" + id + "/start", [&](const FakeRequest&) {
    Engine other(stage.quick());
    other.start(id);
    restarter = std::jthread([&] { stage.fake.restart(milliseconds(100), true); });
    std::this_thread::sleep_for(milliseconds(30));
    return FakeReply{.drop = true};
  });
  Run run = stage.engine.start(id);
  CHECK(run.wait(kPatience)->exit_code == 0);
  restarter.join();
  const std::string unstarted = stage.engine.create(stage.spec("kbench-s-2-1-compile"));
  stage.fake.script("POST /containers/" + unstarted + "/start", FakeReply{.drop = true});
  CHECK(error_of([&] { stage.engine.start(unstarted); }).kind == Kind::unreachable);
}

TEST_CASE("kill: ended and absent are fine, unkillable is not") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  CHECK_NOTHROW(stage.engine.kill(id));  // 409 not running
  CHECK_NOTHROW(stage.engine.kill("absent"));
  stage.fake.script("POST /containers/" + id + "/kill",
                    fake_error(500, "tried to kill container, but did not receive an exit event"));
  CHECK(error_of([&] { stage.engine.kill(id); }).kind == Kind::failed);
}

TEST_CASE("remove: in progress elsewhere, busy, and never") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.script("DELETE /containers/", fake_error(409, "removal of container is already in progress"), 3);
  stage.fake.script("DELETE /containers/", fake_error(500, "device or resource busy"), 2);
  CHECK_NOTHROW(stage.engine.remove(id));
  CHECK(stage.fake.containers().empty());
  CHECK_NOTHROW(stage.engine.remove(id));
  const std::string other = stage.engine.create(stage.spec());
  stage.fake.script("DELETE /containers/", fake_error(500, "device or resource busy"), 1000);
  Options options = stage.quick();
  options.remove_timeout = kShort;
  Engine hasty(options);
  CHECK(error_of([&] { hasty.remove(other); }).kind == Kind::failed);
}

TEST_CASE("logs: demultiplexed, made safe, capped, and the Engine's own failure told apart") {
  Stage stage;
  stage.fake.run([](const FakeJob&, std::stop_token) { return FakeEnd{.log = "one\n\x1b[31mtwo\n"}; });
  const std::string id = stage.engine.create(stage.spec());
  stage.engine.start(id).wait(kPatience);
  CHECK(stage.engine.logs(id) == "one\ntwo\n");
  const std::string daemon = std::string("\3\0\0\0\0\0\0\4oops", 12);
  stage.fake.script("GET /containers/" + id + "/logs", FakeReply{.body = daemon, .chunk_bytes = 1});
  CHECK(error_of([&] { stage.engine.logs(id); }).kind == Kind::failed);
  stage.fake.script("GET /containers/" + id + "/logs", FakeReply{.body = "raw text of a terminal", .chunk_bytes = 1});
  CHECK(error_of([&] { stage.engine.logs(id); }).kind == Kind::failed);
}
