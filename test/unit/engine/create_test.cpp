// Rules 4, 5, 8 and 9: how a container comes to be.
#include <nlohmann/json.hpp>
#include <thread>

#include "test/unit/engine/support.h"

using namespace kbench::test;
using Json = nlohmann::json;

namespace {

Json created(Stage& stage, const ContainerSpec& spec) {
  const std::string id = stage.engine.create(spec);
  for (const FakeJob& job : stage.fake.containers())
    if (job.id == id) return Json::parse(job.config);
  return {};
}

// Inspection answers with one HostConfig field changed, as by an Engine that ignored it.
void ignore(Stage& stage, const std::string& field, const Json& value) {
  stage.fake.script("GET /containers/0", [&stage, field, value](const FakeRequest&) {
    const FakeJob job = stage.fake.containers().at(0);
    Json config = Json::parse(job.config);
    config["HostConfig"][field] = value;
    return FakeReply{.body = Json{{"Id", job.id},
                                  {"Name", "/" + job.name},
                                  {"Config", config},
                                  {"HostConfig", config["HostConfig"]},
                                  {"State", {{"Status", "created"}}}}
                                 .dump()};
  });
}

}  // namespace

TEST_CASE("rule 4: never AutoRemove, never restarted") {
  Stage stage;
  const Json host = created(stage, stage.spec())["HostConfig"];
  CHECK(host["AutoRemove"] == false);
  CHECK(host["RestartPolicy"]["Name"] == "no");
}

TEST_CASE("rule 8: every limit is set, swap equals memory, logs rotate with two files") {
  Stage stage;
  const Json host = created(stage, stage.spec())["HostConfig"];
  CHECK(host["Memory"] == 256 << 20);
  CHECK(host["MemorySwap"] == host["Memory"]);
  CHECK(host["PidsLimit"] == 64);
  CHECK(host["ShmSize"] == 64 << 20);
  CHECK(host["LogConfig"]["Config"]["max-file"] == "2");
  CHECK(host["LogConfig"]["Config"]["max-size"] == std::to_string(4 << 20));
  CHECK(host["Ulimits"][0] == Json{{"Name", "core"}, {"Soft", 0}, {"Hard", 0}});
  CHECK(host["Ulimits"][1] == Json{{"Name", "nofile"}, {"Soft", 1024}, {"Hard", 1024}});
  CHECK(host["NetworkMode"] == "none");
  CHECK(host["CapDrop"] == Json{"ALL"});
  CHECK(host["CapAdd"] == Json{"SETUID"});
  CHECK(host["SecurityOpt"] == Json{"no-new-privileges:true"});
  CHECK(host["ReadonlyRootfs"] == true);
  CHECK(host["OomScoreAdj"] == 0);
  CHECK_FALSE(host.contains("NanoCpus"));
  CHECK_FALSE(host.contains("Binds"));
  ContainerSpec spec = stage.spec("kbench-s-2-1-compile");
  spec.seccomp = R"({"defaultAction":"SCMP_ACT_ERRNO"})";
  CHECK(created(stage, spec)["HostConfig"]["SecurityOpt"][1] == R"(seccomp={"defaultAction":"SCMP_ACT_ERRNO"})");
}

TEST_CASE("rule 8: a specification without a limit is refused before the Engine hears of it") {
  Stage stage;
  const auto refused = [&](auto change) {
    ContainerSpec spec = stage.spec();
    change(spec);
    return error_of([&] { stage.engine.create(spec); }).kind == Kind::bad_request;
  };
  CHECK(refused([](ContainerSpec& spec) { spec.memory_bytes = 0; }));
  CHECK(refused([](ContainerSpec& spec) { spec.pids_max = -1; }));
  CHECK(refused([](ContainerSpec& spec) { spec.shm_bytes = 0; }));
  CHECK(refused([](ContainerSpec& spec) { spec.tmpfs["/tmp"] = "rw,exec"; }));
  CHECK(refused([](ContainerSpec& spec) { spec.labels.clear(); }));
  CHECK(stage.fake.count("POST /containers/create") == 0);
}

TEST_CASE("rule 8: a field that did not stick deletes the container") {
  Stage stage;
  const std::vector<std::pair<std::string, Json>> ignored = {
      {"PidsLimit", nullptr},
      {"MemorySwap", 512 << 20},
      {"Memory", 0},
      {"CapDrop", nullptr},
      {"CapAdd", {"SETUID", "SYS_ADMIN"}},
      {"SecurityOpt", nullptr},
      {"ReadonlyRootfs", false},
      {"NetworkMode", "default"},
      {"Init", nullptr},
      {"AutoRemove", true},
      {"IpcMode", "shareable"},
      {"Privileged", true},
      {"Tmpfs", nullptr},
      {"Mounts", Json::array()},
      {"Ulimits", nullptr},
      {"OomScoreAdj", 500},
      {"ShmSize", 0},
      {"RestartPolicy", {{"Name", "always"}}},
      {"CpusetCpus", "0"},
      {"LogConfig", nullptr},
      {"Devices", {{{"PathOnHost", "/dev/kmsg"}}}},
      {"CgroupnsMode", "host"},
      {"Mounts", {{{"Type", "bind"}, {"Source", stage.folder}, {"Target", "/in"}, {"ReadOnly", false}}}}};
  for (const auto& [field, value] : ignored) {
    INFO(field);
    ignore(stage, field, value);
    const EngineError error = error_of([&] { stage.engine.create(stage.spec()); });
    CHECK(error.kind == Kind::failed);
    CHECK(std::string(error.what()).find("did not keep " + field) != std::string::npos);
    CHECK(stage.fake.containers().empty());
  }
}

TEST_CASE("newer Engines' spelling of capabilities is the same thing") {
  Stage stage;
  ignore(stage, "CapAdd", {"CAP_SETUID"});
  CHECK_NOTHROW(stage.engine.create(stage.spec()));
}

TEST_CASE("rule 8: a warning about a limit is a failure") {
  Stage stage;
  stage.fake.script("POST /containers/create", [&](const FakeRequest& request) {
    FakeReply made{.status = 201};
    Engine other(stage.quick());
    ContainerSpec spec = stage.spec();
    spec.name = request.query.at("name");
    made.body =
        Json{{"Id", other.create(spec)}, {"Warnings", {"Your kernel does not support swap limit capabilities"}}}.dump();
    return made;
  });
  const EngineError error = error_of([&] { stage.engine.create(stage.spec()); });
  CHECK(std::string(error.what()).find("swap limit") != std::string::npos);
  CHECK(stage.fake.containers().empty());
}

TEST_CASE("rule 9: an init is process 1") {
  Stage stage;
  CHECK(created(stage, stage.spec())["HostConfig"]["Init"] == true);
}

TEST_CASE("rule 5: a creation whose answer never came is adopted") {
  Stage stage;
  Options options = stage.quick();
  options.create_timeout = kShort;
  const auto lost = [&](FakeReply reply) {
    stage.fake.script("POST /containers/create", [&stage, reply](const FakeRequest&) {
      Engine other(stage.quick());
      other.create(stage.spec());
      return reply;
    });
    Engine hasty(options);
    const std::string id = hasty.create(stage.spec());
    REQUIRE(stage.fake.containers().size() == 1);
    CHECK(stage.fake.containers().at(0).id == id);
    hasty.remove(id);
  };
  lost({.drop = true});
  lost({.body = "{}", .delay = 2 * kShort});
  lost({.status = 201, .body = R"({"Id":"00000)", .cut_after = 5});
  lost({.status = 201, .body = "no JSON"});
}

TEST_CASE("rule 5: a name taken by our own container: adopted when it is the same, deleted when not") {
  Stage stage;
  const std::string first = stage.engine.create(stage.spec());
  CHECK(stage.engine.create(stage.spec()) == first);
  ContainerSpec other_attempt = stage.spec();
  other_attempt.labels["kbench.attempt"] = "2";
  const std::string second = stage.engine.create(other_attempt);
  CHECK(second != first);
  stage.fake.run([](const FakeJob&, std::stop_token) { return FakeEnd{}; });
  stage.engine.start(second).wait(kPatience);
  CHECK(stage.engine.create(other_attempt) != second);  // it has run: not to be run again
  CHECK(stage.fake.containers().size() == 1);
}

TEST_CASE("rule 5: a name taken by somebody else is left alone") {
  Stage stage;
  ContainerSpec theirs = stage.spec();
  theirs.labels["kbench.owner"] = "other";
  const std::string id = stage.engine.create(theirs);
  CHECK(error_of([&] { stage.engine.create(stage.spec()); }).kind == Kind::conflict);
  CHECK(stage.fake.containers().at(0).id == id);
}

TEST_CASE("rule 5: a storm of conflicts ends") {
  Stage stage;
  stage.fake.script("POST /containers/create", fake_error(409, "Conflict. The name is in use by container \"x\""), 2);
  CHECK_NOTHROW(stage.engine.create(stage.spec()));
  stage.fake.script("POST /containers/create", fake_error(409, "Conflict."), 1000);
  CHECK(error_of([&] { stage.engine.create(stage.spec("kbench-s-3-1-compile")); }).kind == Kind::conflict);
  CHECK(stage.fake.count("POST /containers/create") == 6);  // 2 and a success; 3 and no more
}

TEST_CASE("rule 5: many creations of one name make one container") {
  Stage stage;
  std::vector<std::string> ids(6);
  {
    std::vector<std::jthread> threads;
    for (std::string& id : ids) threads.emplace_back([&stage, &id] { id = stage.engine.create(stage.spec()); });
  }
  CHECK(stage.fake.containers().size() == 1);
  for (const std::string& id : ids) CHECK(id == ids[0]);
}

TEST_CASE("refusals come through") {
  Stage stage;
  ContainerSpec spec = stage.spec();
  spec.image = "sha256:none";
  CHECK(error_of([&] { stage.engine.create(spec); }).kind == Kind::not_found);
  spec = stage.spec();
  spec.mounts[0].source = "/nonexistent";
  CHECK(error_of([&] { stage.engine.create(spec); }).kind == Kind::bad_request);
  stage.fake.script("POST /containers/create", fake_error(500, "no space left on device"));
  CHECK(error_of([&] { stage.engine.create(stage.spec()); }).kind == Kind::no_space);
}

TEST_CASE("containers are listed by label") {
  Stage stage;
  const std::string id = stage.engine.create(stage.spec());
  ContainerSpec theirs = stage.spec("other");
  theirs.labels["kbench.owner"] = "other";
  stage.engine.create(theirs);
  const auto mine = stage.engine.containers("kbench.owner=me");
  REQUIRE(mine.size() == 1);
  CHECK(mine[0].id == id);
  CHECK(mine[0].name == stage.spec().name);
  CHECK(mine[0].labels.at("kbench.submission") == "s-1");
  CHECK(mine[0].status == "created");
}
