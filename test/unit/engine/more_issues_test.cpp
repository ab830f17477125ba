// The twenty issues of other people's clients that docs/engine.md lists: 11 to 20. And answers that nobody expects.
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "test/unit/engine/support.h"

using namespace kbench::test;
using Json = nlohmann::json;

namespace {

FakeEnd until_killed(const FakeJob&, std::stop_token killed) {
  while (!killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
  return {};
}

// All that is asked of an Engine in the life of a container and its image, as "METHOD /path?name=value".
std::vector<FakeRequest> life(Stage& stage) {
  std::vector<FakeRequest> seen;
  std::mutex mutex;
  stage.fake.otherwise([&](const FakeRequest& request) {
    {
      const std::lock_guard lock(mutex);
      seen.push_back(request);
    }
    return stage.fake.answer_as_usual(request);
  });
  stage.engine.info();
  BuildSpec build;
  build.context = {{"Dockerfile", "FROM x\n"}};
  build.tags = {"kbench/env:2"};
  const std::string image = stage.engine.build(build);
  stage.engine.tag(image, "kbench/env", "3");
  const std::string id = stage.engine.create(stage.spec());
  stage.engine.start(id).wait(kPatience);
  stage.engine.logs(id);
  stage.engine.kill(id);
  stage.engine.remove(id);
  stage.engine.containers("kbench.owner=me");
  stage.engine.images("kbench.image");
  stage.engine.remove_image(image);
  std::stop_source stop;
  stage.engine.events("kbench.owner=me", [&] { stop.request_stop(); }, [](const Event&) {}, stop.get_token());
  stage.fake.otherwise([&](const FakeRequest& request) { return stage.fake.answer_as_usual(request); });
  return seen;
}

// Inspection answers as `change` makes it.
void inspected_with(Stage& stage, const std::function<void(Json&)>& change) {
  stage.fake.script("GET /containers/0", [&stage, change](const FakeRequest& request) {
    FakeReply reply = stage.fake.answer_as_usual(request);
    Json answer = Json::parse(reply.body);
    change(answer);
    reply.body = answer.dump();
    return reply;
  });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("issue 11: an end is noticed though not one event comes, and events that come double do no harm") {
  Stage stage;
  std::stop_source stop;
  std::string burst;  // more than the Engine's ring of 256, the last one twice
  for (int i = 0; i < 300; ++i) burst += Json{{"Action", "die"}, {"Actor", {{"ID", std::to_string(i)}}}}.dump() + "\n";
  burst += R"({"Action":"die","Actor":{"ID":"299"}})";
  stage.fake.script("GET /events", FakeReply{.stream = [&](FakeWire& wire, const auto& chunk) {
                      chunk(burst);
                      while (!wire.gone()) std::this_thread::sleep_for(milliseconds(1));
                      return true;
                    }});
  std::vector<std::string> seen;
  stage.engine.events(
      "kbench.owner=me", [] {},
      [&](const Event& event) {
        seen.push_back(event.id);
        if (seen.size() == 301) stop.request_stop();
      },
      stop.get_token());
  CHECK(seen.size() == 301);
  CHECK(seen.back() == "299");
  const std::string id = stage.engine.create(stage.spec());  // nobody listens to events now
  CHECK(stage.engine.start(id).wait(kPatience)->status == "exited");
}

TEST_CASE("issue 12: status 137 is no memory limit, and a memory limit is not always status 137") {
  for (const FakeEnd& end : {FakeEnd{.exit_code = 137}, FakeEnd{.exit_code = 0, .oom_killed = true},
                             FakeEnd{.exit_code = 137, .oom_killed = true}, FakeEnd{.exit_code = 139}}) {
    Stage stage;
    stage.fake.run([&](const FakeJob&, std::stop_token) { return end; });
    Run run = stage.engine.start(stage.engine.create(stage.spec()));
    const auto ended = run.wait(kPatience);
    REQUIRE(ended);
    CHECK(ended->exit_code == end.exit_code);
    CHECK(ended->oom_killed == end.oom_killed);
  }
}

TEST_CASE("issue 13: killing what cannot be killed ends in time, and says so") {
  Stage stage;
  Options options = stage.quick();
  options.kill_timeout = kShort;
  Engine hasty(options);
  hasty.ping();
  CHECK(Options{}.kill_timeout > milliseconds(15'000));  // the Engine itself tries that long
  CHECK(Options{}.remove_timeout > milliseconds(15'000));
  stage.fake.run(until_killed);
  const std::string id = stage.engine.create(stage.spec());
  Run run = stage.engine.start(id);
  stage.fake.script("POST /containers/" + id + "/kill", FakeReply{.status = 204, .delay = 2 * kShort});
  CHECK(error_of([&] { hasty.kill(id); }).kind == Kind::timeout);
  stage.fake.script("POST /containers/" + id + "/kill",
                    fake_error(500, "tried to kill container, but did not receive an exit event"));
  CHECK(error_of([&] { hasty.kill(id); }).kind == Kind::failed);
  CHECK_FALSE(run.wait(milliseconds(20)));  // it is not taken for ended
}

TEST_CASE("issue 14: nothing is ever pruned by the Engine's choice; what is used or gone is told apart") {
  Stage stage;
  for (const FakeRequest& request : life(stage)) CHECK_FALSE(has(request.path, "prune"));
  stage.fake.script("DELETE /images/", fake_error(409,
                                                  "conflict: unable to delete x (cannot be forced) - image is "
                                                  "being used by running container y"));
  CHECK(error_of([&] { stage.engine.remove_image(stage.image); }).kind == Kind::conflict);
  stage.engine.remove_image(stage.image);  // between our look-up and the creation
  CHECK(error_of([&] { stage.engine.create(stage.spec()); }).kind == Kind::not_found);
}

TEST_CASE("issue 15: files travel by bind mounts that must exist, never by the archive calls") {
  Stage stage;
  for (const FakeRequest& request : life(stage)) {
    CHECK_FALSE(has(request.path, "/archive"));
    CHECK_FALSE(has(request.body, "\"Binds\""));  // it would make a missing source, as root
  }
  ContainerSpec spec = stage.spec();
  spec.mounts[0].source = stage.folder + "/absent";
  CHECK(error_of([&] { stage.engine.create(spec); }).kind == Kind::bad_request);
  CHECK_FALSE(std::filesystem::exists(spec.mounts[0].source));
}

TEST_CASE("issue 16: logs are read after the end, not followed, of two files at least, within time and size") {
  Stage stage;
  for (const FakeRequest& request : life(stage)) {
    CHECK_FALSE(has(request.path, "/attach"));
    CHECK_FALSE(has(request.path, "/exec"));
    CHECK_FALSE(request.query.contains("follow"));
    if (request.path == "/containers/create")
      CHECK(Json::parse(request.body)["HostConfig"]["LogConfig"]["Config"]["max-file"] == "2");
  }
  Options options = stage.quick();
  options.logs_timeout = kShort;
  options.log_bytes_max = 1000;
  Engine hasty(options);
  hasty.ping();
  stage.fake.script("GET /containers/x/logs", FakeReply{.stream = [](FakeWire& wire, const auto& chunk) {
                      while (!wire.gone()) {
                        chunk(std::string("\1\0\0\0\0\0\0\1x", 9));
                        std::this_thread::sleep_for(milliseconds(1));
                      }
                      return true;
                    }});
  CHECK(error_of([&] { hasty.logs("x"); }).kind == Kind::timeout);
  options.logs_timeout = kPatience;
  Engine patient(options);
  stage.fake.script("GET /containers/x/logs", FakeReply{.stream = [](FakeWire&, const auto& chunk) {
                      const std::string frame = std::string("\2\0\0\0\0\0\x40\0", 8) + std::string(16'384, 'e');
                      for (int i = 0; i < 2000; ++i) chunk(frame);
                      return true;
                    }});
  CHECK(patient.logs("x") == "[the beginning was cut]\n" + std::string(1000, 'e'));
}

TEST_CASE("issue 17: a container's devices are never changed after its creation") {
  Stage stage;
  std::set<std::string> verbs;
  for (const FakeRequest& request : life(stage))
    if (request.method == "POST" && request.path.starts_with("/containers/"))
      verbs.insert(request.path.substr(request.path.rfind('/') + 1));
  CHECK(verbs == std::set<std::string>{"create", "kill", "start", "wait"});  // update would rewrite the device cgroup
}

TEST_CASE("issue 18: the driver is named, and what keeps a GPU from a container is an error of the start") {
  Stage stage;
  ContainerSpec spec = stage.spec();
  spec.device_requests = {{"nvidia.runtime-hook", {"GPU-a"}, {"gpu", "compute"}}};
  const std::string id = stage.engine.create(spec);
  const Json request = Json::parse(stage.fake.containers().at(0).config)["HostConfig"]["DeviceRequests"][0];
  CHECK(request["Driver"] == "nvidia.runtime-hook");
  CHECK(request["DeviceIDs"] == Json{"GPU-a"});
  CHECK_FALSE(request.contains("Count"));
  for (const char* why :
       {"could not select device driver \"nvidia\" with capabilities: [[gpu]]",
        "OCI runtime create failed: nvidia-container-cli: initialization error: driver rpc error",
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-a",
        "error gathering device information while adding custom device \"/dev/nvidia0\": no such file or directory"}) {
    stage.fake.script("POST /containers/" + id + "/start", fake_error(500, why));
    const EngineError error = error_of([&] { stage.engine.start(id); });
    CHECK(error.kind == Kind::failed);
    CHECK(has(error.what(), why));
  }
}

TEST_CASE("issue 19: open files have a limit always, and the host header is one that Engines take") {
  Stage stage;
  ContainerSpec spec = stage.spec();
  spec.ulimits = {{"fsize", 1000}};
  CHECK(error_of([&] { stage.engine.create(spec); }).kind == Kind::bad_request);
  for (const FakeRequest& request : life(stage)) {
    CHECK(request.headers.at("host") == "docker");
    if (request.path == "/containers/create") CHECK(has(request.body, R"("Name":"nofile")"));
  }
}

TEST_CASE("issue 20: GPUs, nodes and runtimes that an Engine drops or changes without a word are noticed") {
  Stage stage;
  ContainerSpec spec = stage.spec();
  spec.device_requests = {{"cdi", {"nvidia.com/gpu=GPU-a"}, {}}};
  spec.devices = {{"/dev/nvidia0"}};
  spec.runtime = "nvidia";
  using Change = std::function<void(Json & host)>;
  for (const auto& [field, change] : std::vector<std::pair<std::string, Change>>{
           {"DeviceRequests", [](Json& host) { host["DeviceRequests"] = nullptr; }},
           {"DeviceRequests", [](Json& host) { host.erase("DeviceRequests"); }},
           {"DeviceRequests", [](Json& host) { host["DeviceRequests"][0]["DeviceIDs"] = nullptr; }},
           {"DeviceRequests", [](Json& host) { host["DeviceRequests"][0]["DeviceIDs"] = {"all"}; }},
           {"DeviceRequests", [](Json& host) { host["DeviceRequests"][0]["Driver"] = ""; }},
           {"Devices", [](Json& host) { host["Devices"] = Json::array(); }},
           {"Devices", [](Json& host) { host["Devices"][0]["PathOnHost"] = "/dev/nvidia1"; }},
           {"Runtime", [](Json& host) { host["Runtime"] = "runc"; }}}) {
    inspected_with(stage, [&, alter = change](Json& answer) { alter(answer["HostConfig"]); });
    const EngineError error = error_of([&] { stage.engine.create(spec); });
    CHECK(error.kind == Kind::failed);
    INFO(error.what());
    CHECK(has(error.what(), "did not keep " + field));
    CHECK(stage.fake.containers().empty());
  }
  CHECK_NOTHROW(stage.engine.create(spec));
  stage.fake.script("GET /version", FakeReply{.body = R"({"Components":[{"Name":"Podman Engine"}]})"});
  CHECK(Engine(stage.quick()).info().podman);
}

TEST_CASE("whatever is answered to whatever call, it is taken or thrown as an error of the Engine") {
  Stage stage;
  Options options = stage.quick();
  options.remove_timeout = milliseconds(50);
  options.start_timeout = milliseconds(200);  // how long a start without an answer is asked about
  Engine engine(options);
  engine.ping();
  BuildSpec build;
  build.context = {{"Dockerfile", "FROM x\n"}};
  const std::vector<std::pair<std::string, std::function<void()>>> calls = {
      {"GET /info", [&] { engine.info(); }},
      {"GET /images/x/json", [&] { engine.image("x"); }},
      {"GET /images/json", [&] { engine.images("a"); }},
      {"POST /build", [&] { engine.build(build); }},
      {"POST /images/x/tag", [&] { engine.tag("x", "r", "t"); }},
      {"DELETE /images/x", [&] { engine.remove_image("x"); }},
      {"POST /containers/create", [&] { engine.create(stage.spec()); }},
      {"GET /containers/", [&] { engine.create(stage.spec()); }},
      {"GET /containers/x/json", [&] { engine.inspect("x"); }},
      {"GET /containers/json", [&] { engine.containers("a"); }},
      {"POST /containers/x/wait", [&] { engine.start("x"); }},
      {"POST /containers/x/start", [&] { engine.start("x"); }},
      {"POST /containers/x/kill", [&] { engine.kill("x"); }},
      {"DELETE /containers/x", [&] { engine.remove("x"); }},
      {"GET /containers/x/logs", [&] { engine.logs("x"); }},
      {"GET /events", [&] { engine.events("a", [] {}, [](const Event&) {}, {}); }}};
  std::vector<FakeReply> answers = {{.drop = true},
                                    {.status = 0},
                                    {.status = 304},
                                    {.status = 204},
                                    {.status = 302},
                                    {.status = 500, .body = "<html>"},
                                    {.status = 409, .body = "[]"}};
  for (const char* body : {"",
                           "null",
                           "true",
                           "1e400",
                           "[]",
                           "{}",
                           "[null]",
                           "[[]]",
                           "[1]",
                           "[{}]",
                           "\"x\"",
                           "{\"Id\":1}",
                           "{\"Id\":[]}",
                           "{\"Id\":\"i\",\"State\":[]}",
                           "{\"Id\":\"i\",\"State\":{\"Status\":1}}",
                           "{\"Id\":\"i\",\"State\":{\"Status\":\"exited\",\"ExitCode\":99999999999999999999}}",
                           "{\"Id\":\"i\",\"HostConfig\":{\"Ulimits\":7,\"Mounts\":{\"a\":1},\"CapAdd\":{}},\"State\":{"
                           "\"Status\":\"created\"}}",
                           "{\"Id\":\"i\",\"Warnings\":[1]}",
                           "{\"Labels\":{\"a\":1},\"Names\":[1],\"RepoTags\":{}}",
                           "{\"Runtimes\":[1],\"DiscoveredDevices\":[1],\"Warnings\":{}}",
                           "{\"aux\":[],\"errorDetail\":[],\"stream\":1}",
                           "{\"Actor\":[],\"Action\":{}}",
                           "\xff\xfe{",
                           "{} trailing"}) {
    answers.push_back({.body = body});
    answers.push_back({.body = body, .chunk_bytes = 1, .cut_after = std::strlen(body) / 2});
  }
  for (const auto& [what, call] : calls)
    for (const FakeReply& answer : answers) {
      INFO(what << " answered by " << answer.status << " " << answer.body);
      if (what == "POST /containers/x/start") stage.fake.script("POST /containers/x/wait", FakeReply{});
      stage.fake.script(what, answer);
      try {
        call();
      } catch (const EngineError&) {
      }
    }
  CHECK(engine.create(stage.spec()).size() == 64);  // and it goes on
}

TEST_CASE("an answer that is cut at any byte, of its head or its body, is no answer") {
  Stage stage;
  const auto id = stage.engine.create(stage.spec("kbench-s-1-1-whole"));
  BuildSpec build;
  build.context = {{"Dockerfile", "FROM x\n"}};
  FakeRequest look;
  look.method = "GET";
  look.path = "/containers/" + id + "/json";
  const std::string inspected = stage.fake.answer_as_usual(look).body;
  const std::string image = R"({"Id":"sha256:1"})";
  const FakeReply done{.status = 204};
  struct Case {
    std::string what;
    FakeReply answer;
    std::function<void(Engine&)> call;
  };
  const std::vector<Case> cases = {
      {"HEAD /_ping", {.headers = {{"Api-Version", "1.41"}}}, [](Engine& engine) { engine.ping(); }},
      {"GET /_ping", {.body = "OK"}, [](Engine& engine) { engine.ping(); }},
      {"GET /version", {.body = R"({"Version":"20.10"})"}, [](Engine& engine) { engine.info(); }},
      {"GET /info", {.body = R"({"DockerRootDir":"/"})", .chunk_bytes = 4}, [](Engine& engine) { engine.info(); }},
      {"GET /images/x/json", {.body = image}, [](Engine& engine) { engine.image("x"); }},
      {"GET /images/x/json", {.status = 404, .body = "{}"}, [](Engine& engine) { engine.image("x"); }},
      {"GET /images/json", {.body = "[]"}, [](Engine& engine) { engine.images("a"); }},
      {"POST /build",
       {.body = R"({"aux":{"ID":"a"}})", .chunk_bytes = 7},
       [&](Engine& engine) { engine.build(build); }},
      {"POST /images/x/tag", {.status = 201}, [](Engine& engine) { engine.tag("x", "r", "t"); }},
      {"DELETE /images/x", {.body = "[]"}, [](Engine& engine) { engine.remove_image("x"); }},
      {"GET /containers/" + id, {.body = inspected}, [&](Engine& engine) { engine.inspect(id); }},
      {"GET /containers/x/json", {.status = 404, .body = "{}"}, [](Engine& engine) { engine.inspect("x"); }},
      {"GET /containers/json", {.body = "[]", .chunk_bytes = 1}, [](Engine& engine) { engine.containers("a"); }},
      {"POST /containers/x/wait", {.status = 404, .body = "{}"}, [](Engine& engine) { engine.start("x"); }},
      {"POST /containers/x/kill", done, [](Engine& engine) { engine.kill("x"); }},
      {"POST /containers/x/kill", {.status = 409, .body = "{}"}, [](Engine& engine) { engine.kill("x"); }},
      {"DELETE /containers/x", done, [](Engine& engine) { engine.remove("x"); }},
      {"GET /containers/x/logs",
       {.body = std::string("\1\0\0\0\0\0\0\1a", 9)},
       [](Engine& engine) { engine.logs("x"); }},
      {"GET /containers/x/logs", {.body = "", .chunk_bytes = 1}, [](Engine& engine) { engine.logs("x"); }}};
  for (const Case& each : cases) {
    // All has been said when but the last line feed behind the last chunk is lacking.
    const std::size_t whole =
        whole_bytes(each.what.substr(0, each.what.find(' ')), each.answer) - (each.answer.chunk_bytes > 0 ? 1 : 0);
    for (std::size_t cut = 0; cut < whole; ++cut) {
      INFO(each.what << " answered by " << each.answer.status << ", " << cut << " of " << whole << " bytes");
      Engine engine(stage.quick());
      if (each.what.find("ping") == std::string::npos && each.what.find("version") == std::string::npos) engine.ping();
      if (each.what == "GET /_ping") engine.ping();
      FakeReply answer = each.answer;
      answer.cut_whole = cut;
      stage.fake.script(each.what, answer);
      REQUIRE(error_of([&] { each.call(engine); }).kind == Kind::unreachable);
    }
  }
}

TEST_CASE("a creation, a start and a wait whose answers are cut at any byte are found out about") {
  Stage stage;
  const FakeReply created{.status = 201, .body = R"({"Id":"x","Warnings":[]})"}, started{.status = 204};
  const auto cut_at = [](FakeReply answer, std::size_t cut) {
    answer.cut_whole = cut;
    return answer;
  };
  for (std::size_t cut = 0; cut < whole_bytes("POST", created); ++cut) {
    INFO("creation, " << cut << " bytes");
    stage.fake.script("POST /containers/create", [&](const FakeRequest& request) {
      stage.fake.answer_as_usual(request);  // it happens all the same
      return cut_at(created, cut);
    });
    const auto id = stage.engine.create(stage.spec());
    REQUIRE(id.size() == 64);
    REQUIRE(stage.fake.containers().size() == 1);
    stage.engine.remove(id);
  }
  const auto ends = [&](const std::string& what, const std::function<FakeReply(const FakeRequest&)>& answer) {
    const auto id = stage.engine.create(stage.spec());
    stage.fake.script("POST /containers/" + id + what, answer);
    Run run = stage.engine.start(id);
    const auto ended = run.wait(kPatience);
    REQUIRE(ended);
    REQUIRE(ended->exit_code == 3);
    stage.engine.remove(id);
  };
  stage.fake.run([](const FakeJob&, const std::stop_token&) { return FakeEnd{.exit_code = 3}; });
  for (std::size_t cut = 0; cut < whole_bytes("POST", started); ++cut) {
    INFO("start, " << cut << " bytes");
    ends("/start", [&](const FakeRequest& request) {
      stage.fake.answer_as_usual(request);
      return cut_at(started, cut);
    });
  }
  const FakeReply waited{.body = R"({"StatusCode":0})", .chunk_bytes = 3};
  const std::size_t whole = whole_bytes("POST", waited), head = whole_bytes("POST", {.body = "", .chunk_bytes = 3}) - 5;
  for (std::size_t cut = head; cut < whole; ++cut) {  // before, it was not registered: see above
    INFO("wait, " << cut << " of " << whole << " bytes");
    ends("/wait", [&](const FakeRequest&) { return cut_at(waited, cut); });
  }
}

TEST_CASE("docs/engine.md: each rule and issue names tests that exist") {
  std::ifstream file("docs/engine.md");
  REQUIRE(file);
  std::set<std::string> rows;
  std::map<std::string, std::string> sources;
  const std::regex test("`(test/[a-z_/]+\\.cpp): ([^`]+)`");
  for (std::string line; std::getline(file, line);) {
    std::smatch row;
    if (!std::regex_search(line, row, std::regex("^\\| ((rule|issue) [0-9]+) \\|"))) continue;
    int tests = 0;
    for (std::sregex_iterator it(line.begin(), line.end(), test), end; it != end; ++it, ++tests) {
      std::string& source = sources[(*it)[1]];
      if (source.empty()) {
        std::ostringstream text;
        text << std::ifstream((*it)[1]).rdbuf();
        source = text.str();
      }
      INFO((*it)[0]);
      CHECK(has(source, "TEST_CASE(\"" + std::string((*it)[2])));
    }
    INFO(line);
    CHECK(tests > 0);
    rows.insert(row[1]);
  }
  for (int i = 1; i <= 10; ++i) CHECK(rows.contains("rule " + std::to_string(i)));
  for (int i = 1; i <= 20; ++i) CHECK(rows.contains("issue " + std::to_string(i)));
}
