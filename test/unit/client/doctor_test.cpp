// kbench doctor, on an Engine of which the test decides what it lacks.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "test/support/fake_engine.h"

using namespace kbench::client;
using kbench::test::FakeEngine;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// No Engine where DOCKER_HOST says, the fake one where scripts/engine keeps its own.
class Host {
 public:
  Host() {
    std::string name = (fs::temp_directory_path() / "kbench-doctor-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directories(folder_ / "engine");
    ::setenv("DOCKER_HOST", ("unix://" + (folder_ / "none.sock").string()).c_str(), 1);
    ::setenv("KBENCH_STATE", folder_.c_str(), 1);
    path_ = ::getenv("PATH");
    ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  }
  ~Host() {
    ::unsetenv("DOCKER_HOST");
    ::unsetenv("KBENCH_STATE");
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  std::string socket() const { return folder_ / "engine" / "docker.sock"; }
  void add_gpu() const {
    std::ofstream(folder_ / "nvidia-smi") << "#!/bin/sh\necho '0, NVIDIA H200, 580, Enabled, 1980 MHz, 1980 MHz, 30'\n";
    fs::permissions(folder_ / "nvidia-smi", fs::perms(0755));
  }
  // What doctor finds, as it prints it.
  json findings() const {
    const fs::path said = folder_ / "said";
    std::fflush(stdout);
    const int kept = ::dup(STDOUT_FILENO);
    REQUIRE(std::freopen(said.c_str(), "w", stdout) != nullptr);
    doctor(std::nullopt, folder_ / "data", true);
    std::fflush(stdout);
    ::dup2(kept, STDOUT_FILENO);
    ::close(kept);
    std::ifstream in(said);
    return json::parse(in);
  }

 private:
  fs::path folder_;
  std::string path_;
};

// Of the part, with the words in its text: its fix; "none" where there is no such finding.
std::string fix_of(const json& findings, const std::string& part, const std::string& words) {
  for (const json& f : findings)
    if (f["part"] == part && f["text"].get<std::string>().find(words) != std::string::npos) return f["fix"];
  return "none";
}

}  // namespace

TEST_CASE("doctor finds the Engine that scripts/engine started, and says how others find it") {
  const Host host;
  CHECK(fix_of(host.findings(), "engine", "no Docker Engine at ").starts_with("scripts/engine up"));
  const FakeEngine engine(host.socket());
  const json found = host.findings();
  CHECK(fix_of(found, "engine", ", at " + host.socket()).empty());
  CHECK(fix_of(found, "engine", "look for it at").starts_with("export DOCKER_HOST=unix://" + host.socket()));
  CHECK(fix_of(found, "limits", "") == "none");
  ::setenv("DOCKER_HOST", ("unix://" + host.socket()).c_str(), 1);
  CHECK(fix_of(host.findings(), "engine", "look for it at") == "none");
}

TEST_CASE("doctor names what makes each base image") {
  const Host host;
  const FakeEngine engine(host.socket());
  json found = host.findings();
  CHECK(fix_of(found, "image", "kbench/base:cpu is not there") == "scripts/build-base");
  CHECK(fix_of(found, "image", "kbench/base:cuda is not there").empty());  // no GPU, no need
  host.add_gpu();
  found = host.findings();
  CHECK(fix_of(found, "image", "kbench/base:cpu is not there") == "scripts/build-base");
  CHECK(fix_of(found, "image", "kbench/base:cuda is not there").starts_with("scripts/build-base cuda;"));
}

TEST_CASE("doctor says which limits the kernel lacks") {
  const Host host;
  FakeEngine engine(host.socket());
  engine.script("GET /info", {.body = R"({"DockerRootDir":"/","MemoryLimit":true,"SwapLimit":false,"PidsLimit":true,
                                          "CPUSet":false,"Warnings":["WARNING: No swap limit support"]})"});
  const json found = host.findings();
  CHECK_THAT(fix_of(found, "limits", "cannot limit swap"), Catch::Contains("swapaccount=1"));
  CHECK_THAT(fix_of(found, "limits", "cannot limit which processors"), Catch::Contains("cpuset"));
  CHECK(fix_of(found, "limits", "cannot limit memory") == "none");
}
