// Folders, children under another uid, escapes.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "verifier/process/process.h"

using namespace kbench::process;
using namespace std::chrono_literals;

namespace {
constexpr uid_t kUid = 210'000;
}

TEST_CASE("a worker's folder is its own and closed to others") {
  const std::string folder = make_folder(kUid);
  struct stat found{};
  REQUIRE(stat(folder.c_str(), &found) == 0);
  CHECK(found.st_uid == kUid);
  CHECK((found.st_mode & 07777) == 0700);
  write_file(kUid, folder + "/task.json", "{\"a\": 1}");
  const int seen = run_as(
      kUid,
      [&] {
        struct stat file{};
        if (stat((folder + "/task.json").c_str(), &file) != 0) return 1;
        return file.st_size == 8 && (file.st_mode & 0777) == 0400 ? 0 : 2;
      },
      5s);
  CHECK(seen == 0);
  CHECK_THROWS_AS(write_file(kUid, folder + "/task.json", "again"), ProcessFault);
  CHECK_THROWS_AS(write_file(kUid + 1, folder + "/other", "x"), ProcessFault);
  const std::string other = make_folder(kUid);
  CHECK(other != folder);
  CHECK_THROWS_AS(make_folder(kUid, "/proc"), ProcessFault);
  run_as(
      kUid, [&] { return unlink((folder + "/task.json").c_str()) + rmdir(folder.c_str()) + rmdir(other.c_str()); },
      10s);
}

TEST_CASE("a child under a uid keeps nothing of root") {
  const int status = run_as(
      kUid,
      [] {
        if (getuid() != kUid || geteuid() != kUid || getgid() != kUid || getgroups(0, nullptr) != 0) return 1;
        if (setuid(0) == 0 || setgid(0) == 0 || seteuid(0) == 0) return 2;
        return open("/etc/shadow", O_RDONLY) >= 0 ? 3 : 0;
      },
      5s);
  CHECK(status == 0);
  CHECK(run_as(0, [] { return 0; }, 5s) == 126);
}

TEST_CASE("a child under a uid ends at its deadline") {
  const auto start = std::chrono::steady_clock::now();
  CHECK(run_as(
            kUid,
            [] {
              for (;;) pause();
              return 0;
            },
            100ms) == 128 + SIGKILL);
  CHECK(std::chrono::steady_clock::now() - start < 3s);
  CHECK(run_as(kUid, []() -> int { throw 1; }, 5s) == 125);
}

TEST_CASE("escaped text is printable, unambiguous and bounded") {
  CHECK(escaped("plain\n\ttext", 100) == "plain\n\ttext");
  CHECK(escaped(std::string_view("\x1b[31m\0\xff\\", 8), 100) == "\\x1b[31m\\x00\\xff\\x5c");
  CHECK(escaped("abc", 3) == "abc");
  CHECK(escaped("abcd", 3) == "abc");
  CHECK(escaped("ab\x01", 5) == "ab");
  CHECK(escaped("a\x01", 5) == "a\\x01");
}

TEST_CASE("a worker's environment is explicit") {
  setenv("KBENCH_TEST_SECRET", "1", 1);
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  bool home = false, nccl = false;
  for (const auto& [name, value] : worker_environment("/tmp/h")) {
    CHECK(name != "KBENCH_TEST_SECRET");
    home |= name == "HOME" && value == "/tmp/h";
    nccl |= name == "NCCL_NVLS_ENABLE" && value == "0";
  }
  CHECK(home);
  CHECK(nccl);
  unsetenv("NCCL_NVLS_ENABLE");
}
