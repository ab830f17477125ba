#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "daemon/engine/engine.h"
#include "test/support/fake_engine.h"

namespace kbench::test {

using namespace kbench::engine;
using Kind = EngineError::Kind;
using std::chrono::milliseconds;

// Longer than a busy machine takes; where a deadline is to pass, a test shortens that one only.
constexpr milliseconds kPatience{20'000}, kShort{500};

// A fake Engine, and a client of it with short pauses.
struct Stage {
  std::string folder = [] {
    char name[] = "/tmp/kbench-engine-XXXXXX";
    return std::string(::mkdtemp(name));
  }();
  FakeEngine fake{folder + "/docker.sock"};
  Engine engine{quick()};
  std::string image = fake.add_image("kbench/env:1");

  ~Stage() { std::filesystem::remove_all(folder); }
  Options quick() const {
    Options options;
    options.socket = folder + "/docker.sock";
    options.ping_timeout = options.connect_timeout = options.inspect_timeout = options.create_timeout = kPatience;
    options.start_timeout = options.kill_timeout = options.remove_timeout = options.logs_timeout = kPatience;
    options.backoff_min = milliseconds(2);
    options.backoff_max = milliseconds(20);
    return options;
  }
  ContainerSpec spec(const std::string& name = "kbench-s-1-1-compile") const {
    ContainerSpec spec;
    spec.name = name;
    spec.image = image;
    spec.command = {"/bin/true"};
    spec.user = "1000:1000";
    spec.labels = {
        {"kbench.owner", "me"}, {"kbench.submission", "s-1"}, {"kbench.attempt", "1"}, {"kbench.kind", "compile"}};
    spec.memory_bytes = 256 << 20;
    spec.shm_bytes = 64 << 20;
    spec.pids_max = 64;
    spec.caps_add = {"SETUID"};
    spec.ulimits = {{"nofile", 1024}};
    spec.tmpfs = {{"/tmp", "rw,exec,nosuid,nodev,size=64m,mode=1777"}};
    spec.mounts = {{folder, "/in", true}};
    return spec;
  }
};

template <class Body>
EngineError error_of(Body body) {
  try {
    body();
  } catch (const EngineError& error) {
    return error;
  }
  FAIL("no EngineError");
  throw 0;
}

}  // namespace kbench::test
