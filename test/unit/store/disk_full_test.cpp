#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

namespace {

struct TinyDisk {
  Folder folder;
  TinyDisk() { REQUIRE(mount("none", folder.path.c_str(), "tmpfs", 0, "size=4m") == 0); }
  ~TinyDisk() { umount2(folder.path.c_str(), MNT_DETACH); }
};

}  // namespace

TEST_CASE("a full disk is a StoreFault for what does not fit; the store goes on, and recovers with the disk") {
  TinyDisk disk;
  const auto store = open_sqlite(disk.folder.db());
  const std::string kept = submit(*store);
  const std::string ballast = (disk.folder.path / "ballast").string();
  std::ofstream(ballast) << std::string(2'000'000, 'x');

  NewSubmission big = sample();
  big.files.push_back({"big", std::string(300'000, 'x')});
  std::atomic<int> stored{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5; ++n) {
        try {
          submit(*store, big);
          ++stored;
        } catch (const StoreFault&) {
          ++refused;
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(refused > 0);
  CHECK(store->get(kept));
  const auto count = store->list({}).submissions.size();
  CHECK(count == static_cast<std::size_t>(stored) + 1);

  std::filesystem::remove(ballast);
  const auto lease = store->claim(wanted());
  REQUIRE(lease);
  CHECK(lease->submission.id == kept);
  CHECK(store->finish(kept, 1, correct(), 3));
  submit(*store, big);
  Connection db("dbname=\"" + disk.folder.db() + "\"");
  CHECK(broken_invariant(db) == "");
}
