#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "daemon/api/api.h"

using kbench::api::token_in;

TEST_CASE("the token file: made once, private, checked") {
  std::string name = (std::filesystem::temp_directory_path() / "kbench-token-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const std::string path = folder / "token";
  const auto token = token_in(path);
  CHECK(token.size() == 67);
  CHECK(token_in(path) == token);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  struct stat facts{};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);

  ::chmod(path.c_str(), 0640);
  CHECK_THROWS_WITH(token_in(path), Catch::Contains("chmod 600 " + path));
  ::chmod(path.c_str(), 0602);
  CHECK_THROWS_WITH(token_in(path), Catch::Contains("chmod 600 " + path));
  ::chmod(path.c_str(), 0600);
  std::ofstream(path) << "short\n";
  CHECK_THROWS_WITH(token_in(path), Catch::Contains("16 to 512"));
  std::ofstream(path) << "two words, long enough\n";
  CHECK_THROWS(token_in(path));
  std::ofstream(path) << "chosen-by-the-operator\r\n";
  CHECK(token_in(path) == "chosen-by-the-operator");
  std::filesystem::create_symlink(path, folder / "link");
  CHECK_THROWS_WITH(token_in(folder / "link"), Catch::Contains("symbolic link"));
  const std::string fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);  // whose opening would wait for a writer
  CHECK_THROWS_WITH(token_in(fifo), Catch::Contains("not a regular file"));
  CHECK_THROWS(token_in(folder / "no-such-folder" / "token"));
  CHECK(token_in(folder / "second") != token);
  if (::geteuid() == 0) {  // nobody else can give a file away
    REQUIRE(::chown(path.c_str(), 65534, 0) == 0);
    CHECK_THROWS_WITH(token_in(path), Catch::Contains("token file " + path + ": belongs to the user 65534, not to 0") &&
                                          Catch::Contains("chown 0 " + path));
    REQUIRE(::chown(path.c_str(), 0, 65534) == 0);  // a group that may not read it
    CHECK(token_in(path) == "chosen-by-the-operator");
  }
  std::filesystem::remove_all(folder);
}
