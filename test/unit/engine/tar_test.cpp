#include "daemon/engine/tar.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace kbench::engine;
namespace fs = std::filesystem;

TEST_CASE("the same files make the same archive in any order") {
  const TarEntry a{"Dockerfile", "FROM x\n"}, b{"sub/run.sh", "#!/bin/sh\n", true};
  const std::string tar = write_tar({a, b});
  CHECK(tar == write_tar({b, a}));
  CHECK(tar.size() % 512 == 0);
  CHECK(tar.substr(0, 10) == "Dockerfile");
  CHECK(tar.substr(257, 5) == "ustar");
  CHECK(tar.substr(100, 6) == "000644");
  CHECK(tar.substr(512, 7) == "FROM x\n");
  CHECK(tar.substr(1024 + 100, 6) == "000755");
  CHECK(tar.substr(136, 11) == "00000000000");  // mtime
  CHECK(write_tar({{"Dockerfile", "FROM y\n"}, b}) != tar);
}

TEST_CASE("a context refuses bad paths and keeps its limits") {
  for (const std::string bad : {"", "/etc/passwd", "../x", "a/../b", "./a", "a//b", "a/"})
    CHECK_THROWS_AS(write_tar({{bad, "x"}}), BadTar);
  CHECK_THROWS_AS(write_tar({{std::string("a\0b", 3), "x"}}), BadTar);
  CHECK_THROWS_AS(write_tar({{std::string(300, 'a'), "x"}}), BadTar);
  CHECK_NOTHROW(write_tar({{std::string(100, 'a'), "x"}}));
  CHECK_THROWS_AS(write_tar({{"a", "x"}, {"a", "y"}}), BadTar);
  const TarLimits limits{.files_max = 2, .bytes_max = 4};
  CHECK_NOTHROW(write_tar({{"a", "12"}, {"b", "34"}}, limits));
  CHECK_THROWS_AS(write_tar({{"a", "12"}, {"b", "345"}}, limits), BadTar);
  CHECK_THROWS_AS(write_tar({{"a", ""}, {"b", ""}, {"c", ""}}, limits), BadTar);
}

TEST_CASE("a folder is read as it is, without links") {
  char name[] = "/tmp/kbench-tar-XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  fs::create_directories(folder / "sub");
  std::ofstream(folder / "sub/a.txt") << "hello";
  std::ofstream(folder / "run") << "x";
  fs::permissions(folder / "run", fs::perms::owner_all);
  const auto entries = read_folder(folder);
  REQUIRE(entries.size() == 2);
  for (const TarEntry& entry : entries) CHECK(entry.executable == (entry.path == "run"));
  CHECK_THROWS_AS(read_folder(folder, {.files_max = 1}), BadTar);
  CHECK_THROWS_AS(read_folder(folder, {.bytes_max = 5}), BadTar);
  CHECK_NOTHROW(read_folder(folder, {.bytes_max = 6}));
  fs::create_symlink("/etc/passwd", folder / "link");
  CHECK_THROWS_AS(read_folder(folder), BadTar);
  fs::remove(folder / "link");
  ::mkfifo((folder / "pipe").c_str(), 0600);
  CHECK_THROWS_AS(read_folder(folder), BadTar);
  CHECK_THROWS_AS(read_folder(folder / "absent"), BadTar);
  fs::remove_all(folder);
}
