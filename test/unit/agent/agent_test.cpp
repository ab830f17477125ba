// agent/: the front matter parses, and the paths and commands that the texts name exist.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <unistd.h>

namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// key: value lines between two lines of ---.
std::map<std::string, std::string> front_matter(const std::string& text) {
  std::map<std::string, std::string> found;
  REQUIRE(text.starts_with("---\n"));
  const auto end = text.find("\n---\n");
  REQUIRE(end != std::string::npos);
  std::istringstream lines(text.substr(4, end - 3));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    INFO(line);
    REQUIRE(colon != std::string::npos);
    const std::string value = line.substr(colon + 2);
    CHECK(value.find(": ") == std::string::npos);  // a plain YAML value cannot hold one
    CHECK(value.find(" #") == std::string::npos);
    CHECK(std::string("\"'[{&*!|>%@`-").find(value.at(0)) == std::string::npos);
    CHECK(found.emplace(line.substr(0, colon), value).second);
  }
  return found;
}

std::vector<fs::path> texts() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::recursive_directory_iterator("agent"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  return all;
}

std::vector<std::string> matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

int run(const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()); }

struct Copy {  // a task laid out
  fs::path path = fs::temp_directory_path() / ("kbench-agent-test-" + std::to_string(::getpid()));
  Copy() { REQUIRE(run(std::string(KBENCH_PROGRAM) + " task start fused-residual-add-rmsnorm " + path.string()) == 0); }
  ~Copy() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("skills and subagents have their front matter") {
  const std::set<std::string> tools{"Bash", "Read", "Write", "Edit", "Grep", "Glob"};
  int skills = 0, agents = 0;
  for (const fs::path& path : texts()) {
    INFO(path.string());
    const bool skill = path.filename() == "SKILL.md", agent = path.parent_path() == fs::path("agent/agents");
    if (!skill && !agent) continue;
    const auto found = front_matter(content(path));
    for (const auto& [key, value] : found) CHECK((key == "name" || key == "description" || (agent && key == "tools")));
    CHECK(found.at("name") == (skill ? path.parent_path().filename() : path.stem()));
    CHECK(std::regex_match(found.at("name"), std::regex("[a-z0-9-]{1,64}")));
    CHECK(found.at("description").size() > 40);
    CHECK(found.at("description").size() <= 1024);
    if (agent)
      for (const std::string& tool : matches(found.at("tools"), "([A-Za-z]+)")) CHECK(tools.contains(tool));
    skill ? ++skills : ++agents;
  }
  CHECK(skills == 1);
  CHECK(agents == 4);
}

TEST_CASE("the paths that the texts name exist, here or in a working copy") {
  const Copy copy;
  int named = 0;
  for (const fs::path& path : texts()) {
    const std::string text = content(path);
    for (const std::string& link : matches(text, "\\]\\(([^)#]+)\\)")) {
      INFO(path.string() << ": " << link);
      CHECK(fs::exists(path.parent_path() / link));
      ++named;
    }
    for (const std::string& name : matches(text, "`((?:\\./|task/|solution/|skills/|agents/)[A-Za-z0-9_./-]*)`")) {
      INFO(path.string() << ": " << name);
      CHECK((fs::exists(copy.path / name) || fs::exists(path.parent_path() / name)));
      ++named;
    }
  }
  CHECK(named > 20);
}

TEST_CASE("the commands that the texts name exist") {
  int named = 0;
  for (const fs::path& path : texts())
    for (const std::string& command : matches(content(path), "`kbench ([a-z]+(?: start)?)[^`]*`")) {
      INFO(path.string() << ": kbench " << command);
      CHECK(run(std::string(KBENCH_PROGRAM) + " " + command + " --help") == 0);
      ++named;
    }
  CHECK(named >= 2);
}

TEST_CASE("the families that the skill speaks of are those of the plan") {
  std::set<std::string> families;
  for (const auto& entry : fs::directory_iterator("catalog/plan"))
    if (entry.path().extension() == ".jsonl") families.insert(entry.path().stem());
  CHECK(families.size() == 19);
  const std::string text = content("agent/skills/kernel-task/families.md");
  for (const std::string& family : families) {
    INFO(family);
    CHECK(text.find(family) != std::string::npos);
  }
}
