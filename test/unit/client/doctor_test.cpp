// kbench doctor, on an Engine of which the test decides what it lacks.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "daemon/http/http.h"
#include "test/support/fake_engine.h"
#include "test/unit/client/printed.h"

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
  json findings(const std::optional<Options>& server = {}) const {
    return json::parse(test::printed(folder_ / "said", [&] { doctor(server, data(), true); }));
  }
  fs::path data() const { return folder_ / "data"; }

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
  CHECK(fix_of(found, "image", "kbench/base:cuda is not there") == "none is needed: no GPU here");
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

TEST_CASE("whatever doctor finds amiss, it says the fix") {
  const auto check_fixes = [](const json& findings) {
    for (const json& f : findings) {
      INFO(f);
      CHECK((f["level"] == "ok") == f["fix"].get<std::string>().empty());
    }
    return findings;
  };
  using kbench::http::Access;
  using kbench::http::Request;
  using kbench::http::Response;
  const auto server = kbench::http::Server::create({});
  json checks = json::array();
  for (const char* part : {"store", "queue", "source", "tasks", "slots", "engine", "image", "disk", "what is to come"})
    checks.push_back({{"part", part}, {"ok", false}, {"cause", "it is so"}});
  int gpus_status = 200;
  std::string readiness = json{{"ready", false}, {"checks", checks}}.dump();
  const auto answer = [](int status, const std::string& body) {
    Response r;
    r.status = status;
    r.body = body;
    return r;
  };
  server->route("GET", "/healthz", Access::open, [&](const Request&) { return answer(200, R"({"version":"1"})"); });
  server->route("GET", "/api/v1/gpus", Access::open, [&](const Request&) { return answer(gpus_status, "{}"); });
  server->route("GET", "/readyz", Access::open, [&](const Request&) { return answer(503, readiness); });
  Options options;
  options.token = "secret";
  options.url = "http://127.0.0.1:" + std::to_string(server->listen("127.0.0.1", 0));

  const Host host;
  json found = check_fixes(host.findings(options));  // no Engine, no data folder, nothing ready
  CHECK(std::count_if(found.begin(), found.end(), [](const json& f) {
          return f["text"].get<std::string>().starts_with("not ready: ");
        }) == static_cast<int>(checks.size()));
  CHECK(fix_of(found, "server", "not ready: image").starts_with("scripts/build-base"));
  CHECK(fix_of(found, "server", "not ready: what is to come") == "see kbenchd's log");
  for (const std::string& strange :
       {std::string(1'000'000, '['), std::string(R"({"checks":[7]})"), std::string("{}")}) {
    readiness = strange;
    found = check_fixes(host.findings(options));
    CHECK(fix_of(found, "server", options.url + ": ") == "see kbenchd's log");
  }
  for (const int status : {401, 500, 503}) {
    gpus_status = status;
    check_fixes(host.findings(options));
  }
  readiness = "rubbish";
  check_fixes(host.findings(options));
  server->stop();
  check_fixes(host.findings(options));

  host.add_gpu();
  FakeEngine engine(host.socket());
  engine.script("GET /images/kbench/base:cpu/json", {.status = 500});
  check_fixes(host.findings());
  engine.script("GET /info", {.body = "rubbish"});
  check_fixes(host.findings());
  const fs::path token = host.data() / "token";
  fs::create_directories(host.data());
  check_fixes(host.findings());
  std::ofstream(token) << "kb_0123456789abcdef\n";
  fs::permissions(token, fs::perms(0640));
  CHECK(fix_of(check_fixes(host.findings()), "files", "may be read by others") == "chmod 600 " + token.string());
  fs::permissions(token, fs::perms(0600));
  CHECK(fix_of(check_fixes(host.findings()), "files", "is there and private").empty());
  if (::geteuid() != 0) return;
  REQUIRE(::chown(token.c_str(), 65534, 0) == 0);
  CHECK(fix_of(check_fixes(host.findings()), "files", "belongs to the user 65534") == "chown 0 " + token.string());
}
