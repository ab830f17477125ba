// Nothing of a worker outlives it.
#include <dirent.h>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "test/unit/process/sandbox.h"
#include "verifier/process/census.h"

using namespace kbench;
using namespace kbench::process;
using namespace std::chrono_literals;

namespace {

constexpr uid_t kUid = 210'010;

// A public folder of the test's own: a sweep of this machine's /tmp would take its time.
struct PublicFolder {
  PublicFolder() : path("/tmp/kbench-wipe-test-" + std::to_string(getpid())) {
    std::filesystem::create_directory(path);
    chmod(path.c_str(), 01777);
  }
  ~PublicFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

WipeOptions wipe_of(const PublicFolder& folder) {
  WipeOptions options;
  options.folders = {folder.path, "/dev/shm", "/nonexistent"};
  return options;
}

bool is_empty(const std::string& path) { return std::filesystem::is_empty(path); }

}  // namespace

TEST_CASE("all processes of a uid end, whatever session they are in") {
  PublicFolder folder;
  for (int i = 0; i < 3; ++i)
    run_as(
        kUid,
        [] {
          if (fork() == 0) {
            setsid();
            if (fork() == 0)
              for (;;) pause();
            for (;;) {
            }
          }
          return 0;
        },
        5s);
  for (int i = 0; i < 200 && living_of(kUid).size() != 6; ++i) std::this_thread::sleep_for(10ms);
  CHECK(living_of(kUid).size() == 6);
  kill_and_wipe(kUid, wipe_of(folder));
  CHECK(living_of(kUid).empty());
}

TEST_CASE("a fork storm ends") {
  PublicFolder folder;
  run_as(
      kUid,
      [] {
        const rlimit few{60, 60};
        setrlimit(RLIMIT_NPROC, &few);
        if (fork() == 0)
          for (;;) fork();
        return 0;
      },
      5s);
  std::this_thread::sleep_for(50ms);
  kill_and_wipe(kUid, wipe_of(folder));
  CHECK(living_of(kUid).empty());
}

// A group of processes of the test's own; empty where none can be made.
std::string process_group(int processes_max) {
  for (const char* root : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
    const std::string path = std::string(root) + "/kbench-wipe-test-" + std::to_string(getpid());
    if (mkdir(path.c_str(), 0755) != 0) continue;
    std::ofstream limit(path + "/pids.max");
    if (limit << processes_max << std::flush) return path;
    rmdir(path.c_str());
  }
  return "";
}

TEST_CASE("they end though they have taken all processes that the container may have") {
  constexpr int kProcesses = 40;
  const std::string group = process_group(kProcesses);
  if (group.empty()) {
    WARN("no group of processes can be made here");
    return;
  }
  PublicFolder folder;
  const pid_t verifier = fork();
  if (verifier == 0) {
    std::ofstream(group + "/cgroup.procs") << 0 << std::flush;
    run_as(
        kUid,
        [] {
          if (fork() == 0)
            for (;;)
              if (fork() == 0)
                for (;;) pause();
          return 0;
        },
        5s);
    while (living_of(kUid).size() < kProcesses - 1) std::this_thread::sleep_for(1ms);  // all but the verifier's
    try {
      kill_and_wipe(kUid, wipe_of(folder));
    } catch (const ProcessFault&) {
      _exit(1);
    }
    _exit(living_of(kUid).empty() ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(verifier, &status, 0) == verifier);
  CHECK(status == 0);
  kill_and_wipe(kUid, wipe_of(folder));
  for (int i = 0; i < 1000 && rmdir(group.c_str()) != 0; ++i) std::this_thread::sleep_for(1ms);
}

TEST_CASE("files, deep trees, closed folders, links, pipes and shared memory go; other people's stay") {
  PublicFolder folder;
  std::ofstream(folder.path + "/roots") << "stays";
  std::filesystem::create_directory(folder.path + "/open");
  chmod((folder.path + "/open").c_str(), 0777);
  const std::string home = make_folder(kUid, folder.path);
  test::PlainBuffer x(test::kElements * 4), y(test::kElements * 4);
  auto command = test::command_of(kUid, home);
  command.environment = {{"LITTER", folder.path}};
  auto worker =
      WorkerProcess::start(command, test::setup_of(Mode::litters, 0, {x.bytes, 0}, {y.bytes, 0}), {x.fd, y.fd});
  REQUIRE(worker->wait_ready(20s) == verify::Ended::done);
  worker->go(1);
  REQUIRE(worker->wait_done(1, 20s) == verify::Ended::done);
  worker->kill();
  const int shm = run_as(
      kUid,
      [&] {
        std::ofstream(folder.path + "/open/inner") << "goes";
        std::ofstream("/dev/shm/kbench-test") << "goes";
        return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 ? 0 : 1;
      },
      5s);
  CHECK(shm == 0);
  CHECK(std::filesystem::exists(folder.path + "/a"));

  kill_and_wipe(kUid, wipe_of(folder));
  CHECK_FALSE(std::filesystem::exists("/dev/shm/kbench-test"));
  CHECK(std::filesystem::exists(folder.path + "/roots"));
  CHECK(is_empty(folder.path + "/open"));
  std::filesystem::remove(folder.path + "/roots");
  std::filesystem::remove(folder.path + "/open");
  CHECK(is_empty(folder.path));
  std::ifstream table("/proc/sysvipc/shm");
  for (std::string line; std::getline(table, line);)
    CHECK(line.find(" " + std::to_string(kUid) + " ") == std::string::npos);
}

TEST_CASE("root's things are never wiped") { CHECK_THROWS_AS(kill_and_wipe(0), ProcessFault); }

TEST_CASE("more than can be removed in time is the uid's own doing") {
  PublicFolder folder;
  WipeOptions options = wipe_of(folder);
  options.folders.assign(100'000, "/usr");  // nothing to remove, much to look at
  options.processor_time = 1s;
  CHECK_THROWS_AS(kill_and_wipe(kUid, options), Leftovers);
}

TEST_CASE("what cannot be removed is the uid's own doing") {
  PublicFolder folder;
  const std::string kept = folder.path + "/kept";
  std::filesystem::create_directories(kept + "/roots");
  std::ofstream(kept + "/roots/file") << "stays, and so its folders do";
  REQUIRE(chown(kept.c_str(), kUid, kUid) == 0);
  CHECK_THROWS_AS(kill_and_wipe(kUid, wipe_of(folder)), Leftovers);
}

TEST_CASE("a wipe that is held up is an infrastructure fault") {
  PublicFolder folder;
  WipeOptions options = wipe_of(folder);
  options.folders = {"/usr"};  // nothing to remove, much to look at
  options.deadline = 0s;
  bool own = false;
  try {
    kill_and_wipe(kUid, options);
    FAIL("it was in time");
  } catch (const ProcessFault& fault) {
    own = dynamic_cast<const Leftovers*>(&fault) != nullptr;
  }
  CHECK_FALSE(own);
}
