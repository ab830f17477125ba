// Harbor's task format as its releases 0.1 to 0.20 read it, checked over every generated task.
#include "toml/toml.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

namespace fs = std::filesystem;

namespace {

using Check = std::function<bool(const toml::node&)>;

bool text(const toml::node& node) { return node.is_string(); }
bool positive_number(const toml::node& node) { return node.value<double>().value_or(0) > 0; }
bool positive_integer(const toml::node& node) { return node.value_exact<std::int64_t>().value_or(0) > 0; }
bool texts(const toml::node& node) {
  return node.is_array() && node.as_array()->is_homogeneous(toml::node_type::string);
}
bool table(const toml::node& node) { return node.is_table(); }
bool task_name(const toml::node& node) {
  static const std::regex kName("[a-z0-9._-]+/[a-z0-9._-]+");
  return std::regex_match(node.value_or(std::string()), kName);
}
bool absolute_paths(const toml::node& node) {
  if (!texts(node)) return false;
  for (const toml::node& one : *node.as_array()) {
    const std::string path = one.value_or(std::string());
    if (!path.starts_with("/") || path.find("..") != std::string::npos) return false;
  }
  return true;
}

// Every key that may stand in a task.toml of ours. `gpus` may not: Harbor's docker backend refuses a task that has it.
const std::map<std::string, Check> kKnown{
    {"schema_version", text},
    {"artifacts", absolute_paths},
    {"task", table},
    {"task.name", task_name},
    {"task.version", text},
    {"task.description", text},
    {"task.keywords", texts},
    {"metadata", table},
    {"agent", table},
    {"agent.timeout_sec", positive_number},
    {"verifier", table},
    {"verifier.timeout_sec", positive_number},
    {"verifier.environment_mode", text},
    {"environment", table},
    {"environment.build_timeout_sec", positive_number},
    {"environment.cpus", positive_integer},
    {"environment.memory_mb", positive_integer},
    {"environment.storage_mb", positive_integer},
};

void check_table(const toml::table& found, const std::string& prefix) {
  for (const auto& [key, node] : found) {
    const std::string name = prefix + std::string(key.str());
    INFO(name);
    const auto known = kKnown.find(name);
    REQUIRE(known != kKnown.end());
    CHECK(known->second(node));
    if (node.is_table() && name != "metadata") check_table(*node.as_table(), name + ".");
  }
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<fs::path> all_tasks() {
  std::vector<fs::path> tasks;
  for (const auto& family : fs::directory_iterator("tasks"))
    if (family.is_directory())
      for (const auto& task : fs::directory_iterator(family.path())) tasks.push_back(task.path());
  return tasks;
}

}  // namespace

TEST_CASE("every generated task is one of Harbor's") {
  const std::vector<fs::path> tasks = all_tasks();
  REQUIRE(tasks.size() >= 2);
  for (const fs::path& task : tasks) {
    INFO(task.string());
    const toml::table config = toml::parse_file((task / "task.toml").string());
    check_table(config, "");
    for (const char* key : {"schema_version", "task", "agent", "verifier", "environment"}) CHECK(config.contains(key));
    CHECK(config["task"]["name"].value_or(std::string()) == "kbench/" + task.filename().string());

    CHECK(content(task / "instruction.md").size() > 1000);
    for (const char* name : {"environment/Dockerfile", "tests/Dockerfile", "tests/task.json"})
      CHECK(fs::is_regular_file(task / name));
    // Harbor starts test.sh directly, in whatever mode it was uploaded.
    const std::string script = content(task / "tests" / "test.sh");
    CHECK(script.starts_with("#!/bin/bash\n"));
    CHECK(script.find('\r') == std::string::npos);
    CHECK((fs::status(task / "tests" / "test.sh").permissions() & fs::perms::owner_exec) != fs::perms::none);
    CHECK(!fs::exists(task / "solution"));

    for (const char* place : {"environment/docker-compose.yaml", "tests/docker-compose.yaml"}) {
      if (!fs::exists(task / place)) continue;
      const std::string overlay = content(task / place);
      CHECK(overlay.find("\n  main:\n") != std::string::npos);  // the service's name in Harbor
      for (const char* key : {"limits", "network", "command", "cpus", "mem_limit"})
        CHECK(overlay.find(key) == std::string::npos);
    }
  }
}

TEST_CASE("no task's private files are in its environment") {
  for (const fs::path& task : all_tasks())
    for (const auto& entry : fs::recursive_directory_iterator(task / "environment"))
      if (entry.is_regular_file()) {
        INFO(entry.path().string());
        const std::string text = content(entry.path());
        CHECK(text.find("private from here") == std::string::npos);
        CHECK(text.find("void independent") == std::string::npos);
        CHECK(text.find("void control") == std::string::npos);
      }
}
