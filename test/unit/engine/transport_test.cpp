// Rule 1, and what a connection can do.
#include <thread>

#include "test/unit/engine/support.h"

using namespace kbench::test;

TEST_CASE("rule 1: the version is negotiated, never assumed") {
  Stage stage;
  SECTION("an old Engine's own version") {
    stage.fake.api_version = "1.41";
    CHECK(stage.engine.info().api == Version{1, 41});
  }
  SECTION("a new Engine is asked in the newest version this client knows") {
    stage.fake.api_version = "1.55";
    stage.fake.min_api_version = "1.44";
    std::string asked;
    stage.fake.script("GET /containers/json", [&](const FakeRequest& request) {
      asked = request.version;
      return FakeReply{.body = "[]"};
    });
    stage.engine.containers("kbench.owner=me");
    CHECK(asked == "1.51");
  }
  SECTION("too old: compared as numbers, 1.9 is older than 1.41") {
    stage.fake.api_version = "1.9";
    const EngineError error = error_of([&] { stage.engine.info(); });
    CHECK(error.kind == Kind::failed);
    CHECK(std::string(error.what()).find("1.41 to 1.51") != std::string::npos);
  }
  SECTION("too new: its oldest is above our cap") {
    stage.fake.api_version = "1.60";
    stage.fake.min_api_version = "1.52";
    CHECK(error_of([&] { stage.engine.info(); }).kind == Kind::failed);
  }
  SECTION("an Engine that does not answer HEAD is asked by GET") {
    stage.fake.script("HEAD /_ping", FakeReply{.status = 405});
    CHECK(stage.engine.info().api == Version{1, 41});
  }
  SECTION("no version at all") {
    stage.fake.script("HEAD /_ping", FakeReply{});
    stage.fake.script("GET /_ping", FakeReply{.body = "OK"});
    CHECK(error_of([&] { stage.engine.info(); }).kind == Kind::failed);
    stage.fake.script("HEAD /_ping", FakeReply{.headers = {{"Api-Version", "one"}}});
    CHECK(error_of([&] { stage.engine.info(); }).kind == Kind::failed);
  }
}

TEST_CASE("rule 1: negotiated again after a lost connection") {
  Stage stage;
  CHECK(stage.engine.info().api == Version{1, 41});
  stage.fake.down();
  CHECK(error_of([&] { stage.engine.ping(); }).kind == Kind::unreachable);
  stage.fake.api_version = "1.44";
  stage.fake.up();
  CHECK(stage.engine.info().api == Version{1, 44});
}

TEST_CASE("podman is recognised") {
  Stage stage;
  stage.fake.script("GET /version",
                    FakeReply{.body = R"({"MinAPIVersion":"1.24","Components":[{"Name":"Podman Engine"}]})"});
  CHECK(stage.engine.info().podman);
}

TEST_CASE("answers cut, late, absent or wrong are errors of the Engine") {
  Stage stage;
  stage.engine.ping();
  SECTION("cut after any byte") {
    const std::string body = R"([{"Id":"1","Names":["/a"]}])";
    for (std::size_t cut = 0; cut < body.size(); ++cut) {
      stage.fake.script("GET /containers/json", FakeReply{.body = body, .cut_after = cut});
      CHECK(error_of([&] { stage.engine.containers("a"); }).kind == Kind::unreachable);
      stage.fake.script("GET /containers/json", FakeReply{.body = body, .chunk_bytes = 3, .cut_after = cut});
      CHECK(error_of([&] { stage.engine.containers("a"); }).kind == Kind::unreachable);
    }
  }
  SECTION("chunks of one byte are whole") {
    stage.fake.script("GET /containers/json", FakeReply{.body = R"([{"Id":"1","Names":["/a"]}])", .chunk_bytes = 1});
    CHECK(stage.engine.containers("a").at(0).name == "a");
  }
  SECTION("dropped") {
    stage.fake.script("GET /containers/json", FakeReply{.drop = true});
    CHECK(error_of([&] { stage.engine.containers("a"); }).kind == Kind::unreachable);
  }
  SECTION("late") {
    Options options = stage.quick();
    options.kill_timeout = kShort;
    Engine engine(options);
    stage.fake.script("POST /containers/a/kill", FakeReply{.status = 204, .delay = 2 * kShort});
    CHECK(error_of([&] { engine.kill("a"); }).kind == Kind::timeout);
  }
  SECTION("no JSON, another JSON") {
    for (const char* body : {"", "<html>", "{\"a\":", "{}", "null"}) {
      stage.fake.script("GET /containers/json", FakeReply{.body = body});
      CHECK(error_of([&] { stage.engine.containers("a"); }).kind == Kind::failed);
    }
  }
  SECTION("missing and wrong fields are defaults") {
    stage.fake.script("GET /containers/json", FakeReply{.body = R"([{"Id":7,"Names":null,"Labels":[1]}])"});
    CHECK(stage.engine.containers("a").at(0).id.empty());
  }
  SECTION("too long") {
    Options options = stage.quick();
    options.reply_bytes_max = 1000;
    Engine engine(options);
    stage.fake.script("GET /containers/json", FakeReply{.body = "[]" + std::string(998, ' ')});
    CHECK_NOTHROW(engine.containers("a"));
    stage.fake.script("GET /containers/json", FakeReply{.body = "[]" + std::string(999, ' ')});
    CHECK(error_of([&] { engine.containers("a"); }).kind == Kind::failed);
  }
}

TEST_CASE("errors are told apart by status, then by text") {
  Stage stage;
  const auto kind = [&](int status, const std::string& body) {
    stage.fake.script("GET /containers/x/json", FakeReply{.status = status, .body = body});
    return error_of([&] { stage.engine.inspect("x"); });
  };
  CHECK(kind(400, R"({"message":"bad parameter"})").kind == Kind::bad_request);
  CHECK(kind(409, R"({"message":"is paused"})").kind == Kind::conflict);
  CHECK(kind(500, R"({"message":"boom"})").kind == Kind::failed);
  CHECK(kind(500, R"({"message":"write /var: no space left on device"})").kind == Kind::no_space);
  CHECK(std::string(kind(500, "plain \x1b[31mtext").what()).find("plain text (500)") != std::string::npos);
  stage.fake.script("GET /containers/x/json", FakeReply{.status = 404, .body = R"({"message":"No such container"})"});
  CHECK_FALSE(stage.engine.inspect("x"));
}

TEST_CASE("a POST says that it is JSON and names a host") {
  Stage stage;
  std::map<std::string, std::string> headers;
  stage.fake.script("POST /images/a/tag", [&](const FakeRequest& request) {
    headers = request.headers;
    return FakeReply{.status = 201};
  });
  stage.engine.tag("a", "r", "t");
  CHECK(headers["content-type"] == "application/json");
  CHECK(headers["host"] == "docker");
}

TEST_CASE("rule 7: events end when stopped, and throw when the Engine goes") {
  Stage stage;
  std::stop_source stop;
  stage.fake.script(
      "GET /events", FakeReply{.stream = [](FakeWire& wire, const auto& chunk) {
        for (const char c : std::string(R"({"Action":"oom","Actor":{"ID":"c1","Attributes":{"name":"n"}}})"))
          chunk(std::string(1, c));
        while (!wire.gone()) std::this_thread::sleep_for(milliseconds(2));
        return true;
      }});
  std::vector<std::string> seen;
  stage.engine.events(
      "kbench.owner=me", [&] { seen.push_back("connected"); },
      [&](const Event& event) {
        seen.push_back(event.action + " " + event.id + " " + event.attributes.at("name"));
        stop.request_stop();
      },
      stop.get_token());
  CHECK(seen == std::vector<std::string>{"connected", "oom c1 n"});
  std::thread ender([&] {
    while (stage.fake.count("GET /events") < 2) std::this_thread::sleep_for(milliseconds(2));
    stage.fake.down();
  });
  CHECK(error_of([&] { stage.engine.events("kbench.owner=me", [] {}, [](const Event&) {}, {}); }).kind ==
        Kind::unreachable);
  ender.join();
}
