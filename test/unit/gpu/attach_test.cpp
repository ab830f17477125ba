#include "test/unit/engine/support.h"

#include <nlohmann/json.hpp>

#include "daemon/gpu/gpu.h"

using namespace kbench::test;
using namespace kbench::gpu;
using Json = nlohmann::json;

namespace {

const std::vector<Gpu> kTwo = {{"GPU-a", "NVIDIA H200", "580", 5, 0}, {"GPU-b", "NVIDIA H200", "580", 4, 0}};

// The HostConfig that the Engine gets, after create has read it back.
Json host_of(const AttachOptions& options, Mode mode, const std::vector<Gpu>& gpus,
             std::vector<std::string>* env = nullptr) {
  Stage stage;
  ContainerSpec spec = stage.spec();
  AttachOptions here = options;
  for (Mount& mount : here.mounts) mount.source = stage.folder;
  attach(spec, mode, here, gpus);
  stage.engine.create(spec);
  const Json config = Json::parse(stage.fake.containers().at(0).config);
  if (env) *env = config["Env"].get<std::vector<std::string>>();
  return config["HostConfig"];
}

bool has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

TEST_CASE("mode nvidia: by uuid, never by count or index") {
  std::vector<std::string> env;
  const Json host = host_of({}, Mode::nvidia, kTwo, &env);
  const Json& request = host["DeviceRequests"][0];
  CHECK(request["Driver"] == "nvidia");
  CHECK(request["DeviceIDs"] == Json{"GPU-a", "GPU-b"});
  CHECK(request["Capabilities"] == Json::parse(R"([["gpu","compute","utility"]])"));
  CHECK_FALSE(request.contains("Count"));
  CHECK_FALSE(host.contains("Devices"));
  CHECK(has(env, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
}

TEST_CASE("mode cdi: qualified names, no capabilities") {
  const Json request = host_of({}, Mode::cdi, kTwo)["DeviceRequests"][0];
  CHECK(request["Driver"] == "cdi");
  CHECK(request["DeviceIDs"] == Json{"nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"});
  CHECK_FALSE(request.contains("Capabilities"));
}

TEST_CASE("mode devices: nodes by minor number, the host's driver read-only, no uvm-tools") {
  AttachOptions options;
  options.nodes = {"/dev/nvidia-caps/nvidia-cap1"};
  options.mounts = {{"", "/usr/lib/driver", true}};
  options.env = {{"LD_LIBRARY_PATH", "/usr/lib/driver"}};
  std::vector<std::string> env;
  const Json host = host_of(options, Mode::devices, kTwo, &env);
  std::vector<std::string> nodes;
  for (const Json& node : host["Devices"]) {
    nodes.push_back(node["PathOnHost"]);
    CHECK(node["PathInContainer"] == node["PathOnHost"]);
    CHECK(node["CgroupPermissions"] == "rw");
  }
  CHECK(nodes == std::vector<std::string>{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia5", "/dev/nvidia4",
                                          "/dev/nvidia-caps/nvidia-cap1"});
  CHECK(host["Mounts"].back()["Target"] == "/usr/lib/driver");
  CHECK(host["Mounts"].back()["ReadOnly"] == true);
  CHECK(has(env, "LD_LIBRARY_PATH=/usr/lib/driver"));
  CHECK(has(env, "NVIDIA_VISIBLE_DEVICES=void"));
  CHECK_FALSE(host.contains("DeviceRequests"));
}

TEST_CASE("without a GPU a container sees none, whatever its image asks for") {
  AttachOptions options;
  options.mounts = {{"", "/usr/local/cuda", true}};
  for (const Mode mode : {Mode::nvidia, Mode::cdi, Mode::devices, Mode::none}) {
    std::vector<std::string> env;
    const Json host = host_of(options, mode, {}, &env);
    CHECK(has(env, "NVIDIA_VISIBLE_DEVICES=void"));
    CHECK_FALSE(host.contains("DeviceRequests"));
    CHECK_FALSE(host.contains("Devices"));
    CHECK(host["Mounts"].size() ==
          (mode == Mode::devices ? 2 : 1));  // the toolchain comes with the mode that mounts it
  }
}

TEST_CASE("a GPU that cannot be attached is an error, not a container without it") {
  ContainerSpec spec;
  CHECK_THROWS_AS(attach(spec, Mode::none, {}, kTwo), std::invalid_argument);
  CHECK_THROWS_AS(attach(spec, Mode::automatic, {}, kTwo), std::invalid_argument);
  CHECK_THROWS_AS(attach(spec, Mode::devices, {}, {{"GPU-c", "", "", -1, 0}}), std::invalid_argument);
}

TEST_CASE("auto: runtime, then cdi, then configured mounts, then none") {
  Info info;
  AttachOptions options;
  CHECK(resolve(options, info) == Mode::none);
  options.mounts = {{"/driver", "/driver", true}};
  CHECK(resolve(options, info) == Mode::devices);
  info.cdi_devices = {"vendor.com/net=1", "nvidia.com/gpu=GPU-a"};
  CHECK(resolve(options, info) == Mode::cdi);
  info.runtimes = {"runc", "nvidia"};
  CHECK(resolve(options, info) == Mode::nvidia);
  info.podman = true;
  CHECK(resolve(options, info) == Mode::cdi);
  options.mode = Mode::devices;
  CHECK(resolve(options, info) == Mode::devices);
  for (const Mode mode : {Mode::automatic, Mode::nvidia, Mode::cdi, Mode::devices, Mode::none})
    CHECK(mode_named(name_of(mode)) == mode);
  CHECK_FALSE(mode_named("gpu"));
}

TEST_CASE("issue 20: GPUs that an Engine drops without a word are noticed") {
  Stage stage;
  ContainerSpec spec = stage.spec();
  attach(spec, Mode::cdi, {}, kTwo);
  stage.fake.script("GET /containers/0", [&](const FakeRequest&) {
    const FakeJob job = stage.fake.containers().at(0);
    Json config = Json::parse(job.config);
    config["HostConfig"].erase("DeviceRequests");
    return FakeReply{.body = Json{{"Id", job.id},
                                  {"Config", config},
                                  {"HostConfig", config["HostConfig"]},
                                  {"State", {{"Status", "created"}}}}
                                 .dump()};
  });
  CHECK(error_of([&] { stage.engine.create(spec); }).kind == Kind::failed);
  CHECK(stage.fake.containers().empty());
}
