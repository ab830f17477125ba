// The twenty issues of other people's clients that docs/engine.md lists: 1 to 10. What each is, and where else it is
// guarded against, stands there.
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "test/unit/engine/support.h"

using namespace kbench::test;
using Json = nlohmann::json;

namespace {

BuildSpec build_spec() {
  BuildSpec spec;
  spec.context = {{"Dockerfile", "FROM x\n"}};
  spec.tags = {"kbench/env:abc"};
  return spec;
}

std::string to_text(Version version) { return std::to_string(version.major) + "." + std::to_string(version.minor); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("issue 1: every Engine from 20.10 to 29 is spoken to in a version that it knows") {
  struct Known {
    const char *newest, *oldest, *spoken;
  };
  for (const Known& known :
       {Known{"1.41", "1.12", "1.41"}, Known{"1.42", "1.12", "1.42"}, Known{"1.44", "1.24", "1.44"},
        Known{"1.47", "1.24", "1.47"}, Known{"1.51", "1.24", "1.51"}, Known{"1.52", "1.44", "1.51"},
        Known{"1.53", "1.44", "1.51"}, Known{"1.54", "1.40", "1.51"}, Known{"1.55", "1.51", "1.51"}}) {
    Stage stage;
    stage.fake.api_version = known.newest;
    stage.fake.min_api_version = known.oldest;
    std::set<std::string> asked;
    stage.fake.otherwise([&](const FakeRequest& request) {
      asked.insert(request.version);
      return stage.fake.answer_as_usual(request);
    });
    INFO(known.newest);
    CHECK(to_text(stage.engine.info().api) == known.spoken);
    CHECK(stage.engine.start(stage.engine.create(stage.spec())).wait(kPatience)->exit_code == 0);
    CHECK(asked == std::set<std::string>{"", known.spoken});  // without one: only what negotiates
  }
}

TEST_CASE("issue 1: an Engine that was replaced between two calls is asked again in its version") {
  Stage stage;
  stage.fake.api_version = "1.51";
  stage.engine.ping();
  stage.fake.api_version = "1.41";  // older: "client version 1.51 is too new"
  CHECK(stage.engine.containers("a").empty());
  CHECK(stage.engine.info().api == Version{1, 41});
  stage.fake.api_version = "1.52";  // newer: "client version 1.41 is too old"
  stage.fake.min_api_version = "1.44";
  const std::string id = stage.engine.create(stage.spec());
  CHECK(stage.engine.info().api == Version{1, 51});
  CHECK(stage.fake.containers().at(0).id == id);
  stage.fake.script("GET /containers/json", fake_error(400, "client version 1.51 is too new"), 1000);
  CHECK(error_of([&] { stage.engine.containers("a"); }).kind == Kind::bad_request);  // and no loop
  CHECK(stage.fake.count("GET /containers/json") == 4);
}

TEST_CASE("issue 2: every way in which a build fails is a failure, with 200 or without") {
  struct Way {
    int status;
    std::string body;
    Kind kind;
  };
  const std::string image_line = Json{{"aux", {{"ID", "sha256:1"}}}}.dump();
  for (const Way& way :
       {Way{400, R"({"message":"dockerfile parse error line 1: unknown instruction: FORM"})", Kind::bad_request},
        Way{400, R"({"message":"failed to reach build target x in Dockerfile"})", Kind::bad_request},
        Way{500, R"({"message":"Cannot locate specified Dockerfile: Dockerfile"})", Kind::failed},
        Way{500, R"({"message":"unexpected EOF"})", Kind::failed},
        Way{500, R"({"message":"Error processing tar file(exit status 1): write /x: no space left on device"})",
            Kind::no_space},
        Way{200, R"({"errorDetail":{"code":1,"message":"returned a non-zero code: 1"},"error":"x"})", Kind::failed},
        Way{200, R"({"errorDetail":{"code":137,"message":"returned a non-zero code: 137"}})", Kind::failed},
        Way{200, R"({"errorDetail":{"message":"COPY failed: file not found in build context"}})", Kind::failed},
        Way{200, R"({"errorDetail":{"message":"pull access denied for x"}})", Kind::failed},
        Way{200, R"({"errorDetail":{}})", Kind::failed}, Way{200, R"({"error":"the old field alone"})", Kind::failed},
        Way{200, R"({"errorDetail":{"message":"no space left on device"}})", Kind::no_space},
        Way{200, "", Kind::failed}}) {
    INFO(way.status << " " << way.body);
    Stage stage;
    const std::string body = way.status == 200 && !way.body.empty() ? image_line + "\r\n" + way.body : way.body;
    stage.fake.script("POST /build", FakeReply{.status = way.status, .body = body, .chunk_bytes = 1});
    CHECK(error_of([&] { stage.engine.build(build_spec()); }).kind == way.kind);
  }
}

TEST_CASE("issue 3: a chunk is no line: messages split, joined and of several bytes a letter") {
  Stage stage;
  const std::string id = stage.fake.add_image("made:1");
  const std::string body =
      "{\"stream\":\"gr\xc3\xbc\xc3\x9f \\u001b[91m{\\\"}\\n\"}\r\n{\"stream\":\"a\\n\"}{\"status\":\"b\"}\n\n" +
      Json{{"aux", {{"ID", id}}}}.dump() + "\r\n";
  for (std::size_t chunk = 1; chunk <= body.size(); ++chunk) {
    std::string log;
    stage.fake.script("POST /build", FakeReply{.body = body, .chunk_bytes = chunk});
    REQUIRE(stage.engine.build(build_spec(), [&](std::string_view text) { log += text; }) == id);
    REQUIRE(log == "gr\xc3\xbc\xc3\x9f {\"}\na\nb\n");
  }
}

TEST_CASE("issue 4: the classic builder is asked for, and a wish for a session is an error of the Engine") {
  Stage stage;
  std::map<std::string, std::string> query;
  stage.fake.script("POST /build", [&](const FakeRequest& request) {
    query = request.query;
    return fake_error(500, "no active sessions");
  });
  const EngineError error = error_of([&] { stage.engine.build(build_spec()); });
  CHECK(error.kind == Kind::failed);
  CHECK(has(error.what(), "no active sessions"));
  CHECK(query["version"] == "1");
  CHECK_FALSE(query.contains("session"));
  CHECK_FALSE(query.contains("pull"));  // bases are there already
}

TEST_CASE("issue 5: a container that ends before its start is answered is not missed") {
  Stage stage;
  std::set<std::string> conditions;
  stage.fake.otherwise([&](const FakeRequest& request) {
    if (request.query.contains("condition")) conditions.insert(request.query.at("condition"));
    FakeReply reply = stage.fake.answer_as_usual(request);
    if (request.path.ends_with("/start")) {
      while (stage.fake.running() > 0) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(5));  // the wait's answer overtakes the start's
    }
    return reply;
  });
  for (int i = 0; i < 30; ++i) {
    const std::string id = stage.engine.create(stage.spec());
    Run run = stage.engine.start(id);
    const auto ended = run.wait(kPatience);
    REQUIRE(ended);
    CHECK(ended->status == "exited");
    stage.engine.remove(id);
  }
  CHECK(conditions == std::set<std::string>{"next-exit"});
}

TEST_CASE("issue 5: a wait that ends because somebody removed the container says so") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.run([](const FakeJob&, std::stop_token killed) {
    while (!killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return FakeEnd{};
  });
  Run run = stage.engine.start(id);
  std::jthread remover([&] { Engine(stage.quick()).remove(id); });
  CHECK(error_of([&] { run.wait(kPatience); }).kind == Kind::not_found);
}

TEST_CASE("issue 6: a wait cut at any byte is followed by an inspection") {
  Stage stage;
  stage.fake.run([](const FakeJob&, std::stop_token) { return FakeEnd{.exit_code = 7}; });
  const std::string body = R"({"StatusCode":0})";  // not what the inspection says
  for (std::size_t cut = 0; cut < body.size(); ++cut) {
    const std::string id = stage.engine.create(stage.spec());
    stage.fake.script("POST /containers/" + id + "/wait", FakeReply{.body = body, .chunk_bytes = 1, .cut_after = cut});
    Run run = stage.engine.start(id);
    const auto ended = run.wait(kPatience);
    REQUIRE(ended);
    CHECK(ended->exit_code == 7);
    CHECK(run.disturbed());
    stage.engine.remove(id);
  }
}

TEST_CASE("issue 6: an end while the Engine was away is found when it is back") {
  Stage stage;
  std::atomic<bool> go = false;
  stage.fake.run([&](const FakeJob&, std::stop_token) {
    while (!go) std::this_thread::sleep_for(milliseconds(1));
    return FakeEnd{.exit_code = 9};
  });
  Run run = stage.engine.start(stage.engine.create(stage.spec()));
  stage.fake.down();
  CHECK_FALSE(run.wait(milliseconds(50)));
  go = true;
  while (stage.fake.running() > 0) std::this_thread::sleep_for(milliseconds(1));
  stage.fake.up();
  const auto ended = run.wait(kPatience);
  REQUIRE(ended);
  CHECK(ended->exit_code == 9);
  CHECK(run.disturbed());
}

TEST_CASE("issue 7: what runs for ever in the Engine's books ends at our deadline, asked about now and then") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  stage.fake.run([](const FakeJob&, std::stop_token killed) {
    while (!killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return FakeEnd{.exit_code = 255};
  });
  stage.fake.script("POST /containers/" + id + "/wait", FakeReply{.body = ""}, 1'000'000);  // no wait of it ever works
  Run run = stage.engine.start(id);
  CHECK_FALSE(run.wait(milliseconds(400)));
  CHECK(stage.fake.count("GET /containers/" + id) < 200);  // pauses grow to 20 ms: no busy loop
  stage.engine.kill(id);
  const auto ended = run.wait(kPatience);
  REQUIRE(ended);
  CHECK(ended->exit_code == 255);
  CHECK(run.disturbed());  // so that nobody takes 255 for the container's own word
}

TEST_CASE("issue 8: a name that stays taken after its removal is tried again, then given up") {
  Stage stage;
  const FakeReply taken = fake_error(409, "Conflict. The container name is already in use by container \"0\"");
  stage.fake.script("POST /containers/create", taken, 2);  // though nothing is found under the name
  CHECK_NOTHROW(stage.engine.create(stage.spec()));
  stage.fake.script("POST /containers/create", taken, 1'000'000);
  CHECK(error_of([&] { stage.engine.create(stage.spec("kbench-s-1-2-compile")); }).kind == Kind::conflict);
}

TEST_CASE("issue 9: a removal in progress is waited for until the container is gone") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  const FakeReply busy = fake_error(409, "removal of container " + id + " is already in progress");
  SECTION("the other one ends it") {
    stage.fake.script("DELETE /containers/", busy, 1'000'000);
    std::jthread other([&] {
      while (stage.fake.count("DELETE /containers/") < 3) std::this_thread::sleep_for(milliseconds(1));
      stage.fake.script("GET /containers/" + id, fake_error(404, "No such container"), 1'000'000);
    });
    CHECK_NOTHROW(stage.engine.remove(id));
  }
  SECTION("the other one failed, ours is taken up") {
    stage.fake.script("DELETE /containers/", busy, 5);
    CHECK_NOTHROW(stage.engine.remove(id));
    CHECK(stage.fake.containers().empty());
  }
  SECTION("six at a time") {
    std::vector<std::future<void>> removals;  // checked here: Catch2's checks are not for several threads
    for (int i = 0; i < 6; ++i) removals.push_back(std::async(std::launch::async, [&] { stage.engine.remove(id); }));
    for (std::future<void>& removal : removals) CHECK_NOTHROW(removal.get());
    CHECK(stage.fake.containers().empty());
  }
}

TEST_CASE("issue 10: a creation that happens after we looked for it is still only one container") {
  Stage stage;
  stage.fake.script("POST /containers/create", FakeReply{.drop = true});
  stage.fake.script("GET /containers/" + stage.spec().name, [&](const FakeRequest&) {
    Engine late(stage.quick());
    late.create(stage.spec());
    return fake_error(404, "No such container");
  });
  const std::string id = stage.engine.create(stage.spec());
  REQUIRE(stage.fake.containers().size() == 1);
  CHECK(stage.fake.containers().at(0).id == id);
}

TEST_CASE("issue 10: what a lost creation left is found by its label") {
  Stage stage;
  stage.fake.script(
      "POST /containers/create",
      [&](const FakeRequest& request) {
        FakeReply lost = stage.fake.answer_as_usual(request);
        lost.drop = true;
        return lost;
      },
      1'000'000);
  stage.fake.script("GET /containers/" + stage.spec().name, FakeReply{.drop = true}, 1'000'000);
  CHECK(error_of([&] { stage.engine.create(stage.spec()); }).kind == Kind::unreachable);
  CHECK(stage.engine.containers("kbench.owner=me").size() == 1);
}
