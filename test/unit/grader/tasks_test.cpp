#include "daemon/grader/tasks.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace kbench::grader;
namespace fs = std::filesystem;

TEST_CASE("the repository's own catalogue is read") {
  const Tasks tasks("tasks");
  const Task* scan = tasks.find("raw-cuda/segmented-exclusive-scan");
  REQUIRE(scan);
  CHECK(scan->problem.name == "segmented-exclusive-scan");
  CHECK(fs::is_regular_file(scan->folder + "/environment/Dockerfile"));
  CHECK_FALSE(scan->instruction.empty());
  CHECK_FALSE(tasks.find("raw-cuda/none"));
  CHECK_FALSE(tasks.find(""));
}

TEST_CASE("every fault of a catalogue is named at once") {
  char name[] = "/tmp/kbench-tasks-XXXXXX";
  const fs::path root = ::mkdtemp(name);
  for (const char* task : {"a/one/tests", "a/two/tests", "a/moved/tests", "a/empty"})
    fs::create_directories(root / task);
  std::ofstream(root / "a/one/tests/task.json") << "{";
  std::ofstream(root / "a/two/tests/task.json") << "[]";
  fs::copy_file("tasks/raw-cuda/segmented-exclusive-scan/tests/task.json", root / "a/moved/tests/task.json");
  try {
    const Tasks tasks(root.string());
    FAIL("read");
  } catch (const BadTasks& fault) {
    const std::string what = fault.what();
    CHECK(what.find("a/one") != what.npos);
    CHECK(what.find("a/two") != what.npos);
    CHECK(what.find("says that it is raw-cuda/segmented-exclusive-scan") != what.npos);
  }
  CHECK_THROWS_AS(Tasks((root / "absent").string()), BadTasks);
  fs::remove_all(root);
}
