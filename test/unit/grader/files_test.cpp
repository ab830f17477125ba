#include "daemon/grader/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace kbench::grader;
namespace fs = std::filesystem;

namespace {

struct Ground {
  fs::path root = [] {
    char name[] = "/tmp/kbench-files-XXXXXX";
    return fs::path(::mkdtemp(name));
  }();
  std::string from = root / "from", to = root / "to";
  Ground() {
    fs::create_directories(root / "from/artefact");
    fs::create_directories(to);
  }
  ~Ground() { fs::remove_all(root); }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root / "from" / path).parent_path());
    std::ofstream(root / "from" / path) << text;
  }
  std::string text(const std::string& path) const {
    std::ifstream file(fs::path(to) / path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

const TakeLimits kLimits{.files_max = 3, .bytes_max = 10, .depth_max = 2};

}  // namespace

TEST_CASE("an artefact is copied and hashed") {
  Ground ground;
  ground.put("artefact/solution.py", "hello");
  ground.put("artefact/sub/b.py", "world");
  const Taken taken = take_folder(ground.from, "artefact", ground.to, kLimits);
  CHECK(taken.files == 2);
  CHECK(taken.bytes == 10);
  CHECK(ground.text("solution.py") == "hello");
  CHECK(ground.text("sub/b.py") == "world");
  CHECK((fs::status(fs::path(ground.to) / "sub/b.py").permissions() & fs::perms::mask) == fs::perms(0444));
  Ground other;
  other.put("artefact/solution.py", "hellO");
  other.put("artefact/sub/b.py", "world");
  CHECK(take_folder(other.from, "artefact", other.to, kLimits).sha256 != taken.sha256);
}

TEST_CASE("no artefact is no files") {
  Ground ground;
  fs::remove(fs::path(ground.from) / "artefact");
  CHECK(take_folder(ground.from, "artefact", ground.to, kLimits).files == 0);
}

TEST_CASE("links, special files and too much are refused") {
  Ground ground;
  const fs::path artefact = fs::path(ground.from) / "artefact";
  const auto refused = [&] {
    try {
      take_folder(ground.from, "artefact", ground.to, kLimits);
    } catch (const FileFault&) {
      return true;
    }
    return false;
  };
  SECTION("symlink to a file") {
    fs::create_symlink("/etc/passwd", artefact / "submission.so");
    CHECK(refused());
  }
  SECTION("symlink to a folder") {
    fs::create_directory_symlink("/etc", artefact / "sub");
    CHECK(refused());
  }
  SECTION("the artefact itself is a symlink") {
    fs::remove(artefact);
    fs::create_directory_symlink("/etc", artefact);
    CHECK(refused());
  }
  SECTION("hard link") {
    ground.put("artefact/a", "x");
    fs::create_hard_link(artefact / "a", ground.root / "other");
    CHECK(refused());
  }
  SECTION("fifo") {
    ::mkfifo((artefact / "pipe").c_str(), 0666);
    CHECK(refused());
  }
  SECTION("one byte too many") {
    ground.put("artefact/a", "12345678901");
    CHECK(refused());
  }
  SECTION("one byte too many in all") {
    ground.put("artefact/a", "123456");
    ground.put("artefact/b", "12345");
    CHECK(refused());
  }
  SECTION("one file too many") {
    for (const char* name : {"a", "b", "c", "d"}) ground.put(std::string("artefact/") + name, "");
    CHECK(refused());
  }
  SECTION("too deep") {
    ground.put("artefact/a/b/c/d", "");
    CHECK(refused());
  }
  SECTION("at the limits") {
    ground.put("artefact/a/b/c", "1234567890");
    ground.put("artefact/d", "");
    ground.put("artefact/e", "");
    CHECK_FALSE(refused());
  }
}

TEST_CASE("results are read beneath their folder only") {
  Ground ground;
  ground.put("reward.json", "12345");
  CHECK(read_beneath(ground.from, "reward.json", 5) == "12345");
  CHECK_THROWS_AS(read_beneath(ground.from, "reward.json", 4), FileFault);
  CHECK_FALSE(read_beneath(ground.from, "absent.json", 5));
  std::ofstream(ground.root / "secret") << "x";
  CHECK_THROWS_AS(read_beneath(ground.from, "../secret", 5), FileFault);
  CHECK_THROWS_AS(read_beneath(ground.from, (ground.root / "secret").string(), 5), FileFault);
  fs::create_symlink(ground.root / "secret", fs::path(ground.from) / "details.json");
  CHECK_THROWS_AS(read_beneath(ground.from, "details.json", 5), FileFault);
  CHECK_THROWS_AS(read_beneath(ground.from, "artefact", 5), FileFault);
}

TEST_CASE("submissions are written beneath their folder only, readable for another uid") {
  Ground ground;
  const auto mask = ::umask(0077);
  write_beneath(ground.to, "a/b/c.cpp", "text");
  ::umask(mask);
  CHECK(ground.text("a/b/c.cpp") == "text");
  CHECK((fs::status(fs::path(ground.to) / "a/b/c.cpp").permissions() & fs::perms::mask) == fs::perms(0644));
  CHECK((fs::status(fs::path(ground.to) / "a/b").permissions() & fs::perms::mask) == fs::perms(0755));
  for (const std::string bad : {"", "/x", "../x", "a/../../x", "a//b", "./a", "a/", "a/b/c.cpp"})
    CHECK_THROWS_AS(write_beneath(ground.to, bad, ""), FileFault);
  CHECK_THROWS_AS(write_beneath(ground.to, std::string("a\0b", 3), ""), FileFault);
  CHECK_THROWS_AS(write_beneath(ground.to, std::string(201, 'a'), ""), FileFault);
  fs::create_directory_symlink("/tmp", fs::path(ground.to) / "out");
  CHECK_THROWS_AS(write_beneath(ground.to, "out/x", ""), FileFault);
}

TEST_CASE("sha256 is sha256") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
