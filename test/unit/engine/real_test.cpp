// Against a running Engine: what the fake claims, the real one does.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/engine/engine.h"

using namespace kbench::engine;
using Kind = EngineError::Kind;

namespace {

constexpr milliseconds kLong{30'000};

struct Real {
  Options options = [] {
    Options made;
    if (const char* host = std::getenv("DOCKER_HOST")) made.socket = std::string(host).substr(std::strlen("unix://"));
    return made;
  }();
  Engine engine{options};
  std::string owner = "test-" + std::to_string(::getpid());
  std::string folder = [] {
    char name[] = "/tmp/kbench-real-XXXXXX";
    return std::string(::mkdtemp(name));
  }();
  std::string image = engine.image("debian:bookworm-slim").value_or(Image{}).id;

  ~Real() {
    for (const Container& container : engine.containers("kbench.owner=" + owner)) engine.remove(container.id);
    std::filesystem::remove_all(folder);
  }
  ContainerSpec spec(const std::string& script, const std::string& kind = "compile") const {
    ContainerSpec spec;
    spec.name = "kbench-" + owner + "-1-" + kind;
    spec.image = image;
    spec.command = {"/bin/sh", "-c", script};
    spec.user = "0:0";
    spec.labels = {{"kbench.owner", owner}, {"kbench.submission", "s"}, {"kbench.attempt", "1"}, {"kbench.kind", kind}};
    spec.env = {{"PATH", "/usr/bin:/bin"}, {"LD_PRELOAD", ""}};
    spec.memory_bytes = 64 << 20;
    spec.shm_bytes = 16 << 20;
    spec.pids_max = 32;
    spec.caps_add = {"SETUID", "SETGID", "KILL"};
    spec.ulimits = {{"nofile", 1024}, {"fsize", 1 << 20}};
    spec.tmpfs = {{"/tmp", "rw,exec,nosuid,nodev,size=16m,mode=1777"},
                  {"/kbench", "rw,noexec,nosuid,nodev,size=1m,mode=0700"}};
    spec.mounts = {{folder, "/kbench/out", false}};
    spec.cpuset = "0";
    return spec;
  }
  Container run(const ContainerSpec& made) {
    const std::string id = engine.create(made);
    const auto ended = engine.start(id).wait(kLong);
    REQUIRE(ended);
    return *ended;
  }
};

}  // namespace

TEST_CASE("real: version, info, image") {
  Real real;
  const Info info = real.engine.info();
  CHECK(info.api >= kApiFloor);
  CHECK(std::filesystem::is_directory(info.data_root));
  REQUIRE_FALSE(real.image.empty());
  CHECK_FALSE(real.engine.image("kbench/absent:1"));
}

TEST_CASE("real: a hardened container is what it says") {
  Real real;
  const Container ended = real.run(
      real.spec("grep -E 'NoNewPrivs|CapEff|Seccomp:' /proc/self/status; touch /x 2>&1; stat -c '%a %u' /kbench; ls "
                "/sys/class/net;"
                "ulimit -c; ulimit -n; cat /proc/self/oom_score_adj; cp /bin/true /tmp/t && /tmp/t && echo ran;"
                "echo result > /kbench/out/file; exit 5"));
  CHECK(ended.exit_code == 5);
  const std::string log = real.engine.logs(ended.id);
  INFO(log);
  for (const char* expected : {"NoNewPrivs:\t1", "CapEff:\t00000000000000e0", "Seccomp:\t2", "Read-only file system",
                               "700 0", "lo", "1024", "\n0\n", "ran"})
    CHECK(log.find(expected) != std::string::npos);
  CHECK(log.find("eth0") == std::string::npos);
  CHECK(std::filesystem::file_size(real.folder + "/file") == 7);
}

TEST_CASE("real: memory and processes are bounded") {
  Real real;
  Container ended = real.run(real.spec("head -c 200000000 /dev/zero | tail"));
  CHECK(ended.oom_killed);
  real.engine.remove(ended.id);
  ended = real.run(real.spec("i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done; echo all"));
  CHECK(real.engine.logs(ended.id).find("all") == std::string::npos);
}

TEST_CASE("real: kill, deadline, remove, and the name again") {
  Real real;
  const std::string id = real.engine.create(real.spec("sleep 60"));
  CHECK(real.engine.create(real.spec("sleep 60")) == id);
  Run run = real.engine.start(id);
  CHECK_FALSE(run.wait(milliseconds(200)));
  real.engine.kill(id);
  CHECK(run.wait(kLong)->exit_code == 137);
  CHECK_NOTHROW(real.engine.kill(id));
  CHECK(real.engine.containers("kbench.owner=" + real.owner).size() == 1);
  std::vector<std::jthread> removers;
  for (int i = 0; i < 4; ++i) removers.emplace_back([&] { real.engine.remove(id); });
  removers.clear();
  CHECK_FALSE(real.engine.inspect(id));
  CHECK(real.engine.create(real.spec("sleep 60")) != id);
}

TEST_CASE("real: a start that fails is an error, not a hang") {
  Real real;
  ContainerSpec spec = real.spec("");
  spec.command = {"/nonexistent"};
  CHECK(real.run(spec).exit_code == 127);  // the init is process 1: the start itself is good
  ContainerSpec gpu = real.spec("true", "measure");
  gpu.device_requests = {{"nonesuch", {"GPU-0"}, {"gpu"}}};
  const std::string other = real.engine.create(gpu);
  CHECK_THROWS_AS(real.engine.start(other), EngineError);
  ContainerSpec absent = real.spec("true", "absent");
  absent.mounts[0].source = "/nonexistent";
  CHECK_THROWS_AS(real.engine.create(absent), EngineError);
  CHECK_FALSE(std::filesystem::exists("/nonexistent"));
}

TEST_CASE("real: images are built from an id, reused, fail and stop") {
  Real real;
  BuildSpec spec;
  spec.tags = {"kbench/" + real.owner + ":1"};
  spec.labels = {{"kbench.image", real.owner}};
  spec.args = {{"KBENCH_BASE", real.image}};
  spec.context = {{"Dockerfile", "ARG KBENCH_BASE=x\nFROM ${KBENCH_BASE}\nCOPY data /data\nRUN cat /data\n"},
                  {"data", "hello\n"}};
  std::string log;
  const std::string id = real.engine.build(spec, [&](std::string_view text) { log += text; });
  CHECK(log.find("hello") != std::string::npos);
  CHECK(real.engine.image(spec.tags[0])->id == id);
  CHECK(real.engine.images("kbench.image=" + real.owner).size() == 1);
  CHECK(real.engine.build(spec) == id);
  real.engine.remove_image(id);
  CHECK_FALSE(real.engine.image(spec.tags[0]));

  BuildSpec failing = spec;
  failing.context[0].content = "ARG KBENCH_BASE=x\nFROM ${KBENCH_BASE}\nRUN echo why >&2; exit 3\n";
  try {
    real.engine.build(failing);
    FAIL("built");
  } catch (const EngineError& error) {
    CHECK(error.kind == Kind::failed);
    CHECK(std::string(error.what()).find("why") != std::string::npos);
    CHECK(std::string(error.what()).find('\x1b') == std::string::npos);
  }
  failing.context[0].content = "FORM x\n";
  CHECK_THROWS_AS(real.engine.build(failing), EngineError);

  failing.context[0].content = "ARG KBENCH_BASE=x\nFROM ${KBENCH_BASE}\nRUN sleep 100\n";
  std::stop_source stop;
  const auto begin = std::chrono::steady_clock::now();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(1500));
    stop.request_stop();
  });
  try {
    real.engine.build(failing, {}, stop.get_token());
    FAIL("built");
  } catch (const EngineError& error) {
    CHECK(error.kind == Kind::cancelled);
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  // What it leaves is untagged, and known by its label. The step's container goes a moment after the answer does.
  const auto remove_all = [&] {
    for (const Image& image : real.engine.images("kbench.image=" + real.owner)) {
      try {
        real.engine.remove_image(image.id);
      } catch (const EngineError& error) {
        CHECK(error.kind == Kind::conflict);
      }
    }
    return real.engine.images("kbench.image=" + real.owner).empty();
  };
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!remove_all() && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(milliseconds(50));
  CHECK(real.engine.images("kbench.image=" + real.owner).empty());
  failing.context[0].content = "ARG KBENCH_BASE=x\nFROM ${KBENCH_BASE}\nRUN true\nRUN false\n";
  CHECK_THROWS_AS(real.engine.build(failing), EngineError);
  const std::vector<Image> left = real.engine.images("kbench.image=" + real.owner);
  REQUIRE(left.size() == 1);
  CHECK(left[0].tags.empty());
  CHECK(remove_all());
}
