#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

TEST_CASE("a reopened store has what was in it") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.open();
  CHECK(f.store->get(id));
  CHECK(f.store->files(id).size() == 2);
  CHECK(f.store->claim(wanted())->submission.id == id);
}

TEST_CASE("a store of a newer kbenchd is refused, naming both versions") {
  Fixture f;
  f.store.reset();
  f.raw().execute("insert into schema_version (version) values (7001)");
  CHECK_THROWS_WITH(f.open(),
                    Catch::Contains("7001") && Catch::Contains("knows up to 1") && Catch::Contains("newer kbenchd"));
}

TEST_CASE("what cannot be a store says so") {
  Folder folder;
  CHECK_THROWS_WITH(open_sqlite((folder.path / "none" / "x.db").string()),
                    Catch::Contains("No such file or directory"));
  std::ofstream(folder.db())
      << "this is a text, long enough to be taken for a header of a database, surely, one would say";
  CHECK_THROWS_WITH(open_sqlite(folder.db()), Catch::Contains("not a database"));
  CHECK_THROWS_AS(open_sqlite("a\"b"), StoreFault);
}

TEST_CASE("the file is the daemon's alone, its path may hold blanks, commits reach the disk") {
  Folder folder;
  const std::string path = (folder.path / "with a blank.db").string();
  const auto store = open_sqlite(path);
  submit(*store);
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat s{};
    REQUIRE(stat((path + suffix).c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0600);
  }
}
