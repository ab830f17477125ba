#include "daemon/grader/specs.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace kbench::grader;

namespace {

bool follows(const std::vector<std::string>& command, const std::string& option, const std::string& value) {
  const auto found = std::find(command.begin(), command.end(), option);
  return found != command.end() && found + 1 != command.end() && found[1] == value;
}

}  // namespace

TEST_CASE("the compile container: a uid of its own, no capability, no tests") {
  Options options;
  options.compile_cpuset = "0";
  const Attempt attempt{"me", "s-1", 2};
  const auto spec =
      compile_spec(options, attempt, {"sha256:1", "cpu", "cpp", "/w/submission", "/w/compiled", 190'001}, "{}");
  CHECK(spec.name == "kbench-s-1-2-compile");
  CHECK(spec.labels ==
        std::map<std::string, std::string>{
            {"kbench.owner", "me"}, {"kbench.submission", "s-1"}, {"kbench.attempt", "2"}, {"kbench.kind", "compile"}});
  CHECK(spec.user == "190001:190001");
  CHECK(spec.caps_add.empty());
  CHECK(spec.seccomp == "{}");
  CHECK(spec.cpuset == "0");
  CHECK(spec.memory_bytes == options.compile_memory_bytes);
  REQUIRE(spec.mounts.size() == 2);
  CHECK(spec.mounts[0].read_only);
  CHECK(spec.mounts[1].target == "/out");
  CHECK(spec.command[0] == "/opt/kbench/bin/kbench-verify");
  CHECK(follows(spec.command, "--seconds", "120"));
  CHECK(follows(spec.command, "--language", "cpp"));
  CHECK(spec.devices.empty());
}

TEST_CASE("the measuring container: root with three capabilities, what is secret under /kbench") {
  const Options options;
  const auto spec = measure_spec(options, {"me", "s-1", 2},
                                 {"sha256:2", "cpu", "", "/w/artefact", "/w/out", "/w/report", "2-3", 200'032}, "{}");
  CHECK(spec.name == "kbench-s-1-2-measure");
  CHECK(spec.user == "0:0");
  CHECK(spec.caps_add == std::vector<std::string>{"SETUID", "SETGID", "KILL"});
  CHECK(spec.cpuset == "2-3");
  CHECK(spec.tmpfs.at("/kbench").find("mode=0700") != std::string::npos);
  CHECK(spec.tmpfs.at("/tmp").find(",exec,") != std::string::npos);
  REQUIRE(spec.mounts.size() == 3);
  CHECK(spec.mounts[0].target == "/artefact");
  CHECK(spec.mounts[0].read_only);
  CHECK(spec.mounts[1].target == "/kbench/out");
  CHECK(spec.mounts[2].target == "/kbench/report");
  CHECK(follows(spec.command, "--uid-base", "200032"));
  CHECK(follows(spec.command, "--repetition-seconds", "10"));
  CHECK(follows(spec.command, "--artefact", "/artefact"));
  CHECK(std::find(spec.command.begin(), spec.command.end(), "--language") == spec.command.end());
}
