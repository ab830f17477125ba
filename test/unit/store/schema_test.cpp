#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

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

TEST_CASE("readers that never pause do not let the write-ahead log grow without end") {
  Folder folder;
  Options options;
  options.wal_bytes_max = 1 << 20;
  const auto store = open_sqlite(folder.db(), options);
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&] {
      while (!stop) store->list({});
    });
  }
  // Each time soon enough, but on a busy machine not at the first try.
  NewSubmission s = sample();
  s.files.push_back({"big", std::string(20'000, 'x')});
  int emptied = 0;
  std::uintmax_t last = 0;
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (emptied < 3 && std::chrono::steady_clock::now() < until) {
    submit(*store, s);
    const auto bytes = std::filesystem::file_size(folder.db() + "-wal");
    if (bytes < last) ++emptied;
    last = bytes;
  }
  stop = true;
  for (auto& r : readers) r.join();
  CHECK(emptied == 3);
}

TEST_CASE("a read that stays open does not hold commits up, however long the write-ahead log is") {
  Folder folder;
  Options options;
  options.wal_bytes_max = 1 << 16;
  const auto store = open_sqlite(folder.db(), options);
  submit(*store);
  Connection reader("dbname=\"" + folder.db() + "\"");
  reader.change("begin");
  std::int64_t n = 0;
  reader.one("select count(*) from submissions", std::tie(n));
  NewSubmission s = sample();
  s.files.push_back({"big", std::string(100'000, 'x')});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) submit(*store, s);
  CHECK(std::chrono::steady_clock::now() - start < 4s);  // less than the time a connection waits for a lock
  CHECK(std::filesystem::file_size(folder.db() + "-wal") > 1'000'000);
  reader.change("rollback");
  std::this_thread::sleep_for(1'100ms);  // until it is tried again
  submit(*store, s);
  for (int i = 0; i < 100 && std::filesystem::file_size(folder.db() + "-wal") > 0; ++i)
    std::this_thread::sleep_for(20ms);  // the log is seen to after the answer
  CHECK(std::filesystem::file_size(folder.db() + "-wal") == 0);
}

TEST_CASE("a store of a newer kbenchd is refused, naming both versions") {
  Fixture f;
  f.store.reset();
  f.raw().execute("insert into schema_version (version) values (7001)");
  CHECK_THROWS_WITH(f.open(),
                    Catch::Contains("7001") && Catch::Contains("knows up to 2") && Catch::Contains("newer kbenchd"));
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

TEST_CASE("the file is the daemon's alone, its path may hold blanks") {
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
