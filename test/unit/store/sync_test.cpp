// What was acknowledged has reached the disk. Power cannot be cut here, so the calls that see to it are counted.
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

namespace {
std::atomic<int> syncs{0};
}

// What an executable defines itself is not taken from libraries: SQLite calls these.
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

TEST_CASE("each write that is acknowledged was synced before") {
  Fixture f;
  std::string id;
  const auto syncs_of = [](const auto& write) {
    const int before = syncs;
    write();
    return syncs - before;
  };
  for (int i = 0; i < 10; ++i) CHECK(syncs_of([&] { id = submit(*f.store); }) == 1);
  CHECK(syncs_of([&] { id = f.store->claim(wanted())->submission.id; }) == 1);
  CHECK(syncs_of([&] { f.store->append_event(id, 1, 1, "phase", "{}"); }) == 1);
  CHECK(syncs_of([&] { f.store->finish(id, 1, correct(), 3); }) == 1);
  CHECK(syncs_of([&] { f.store->get(id); }) == 0);
}
