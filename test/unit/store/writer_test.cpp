#include "daemon/store/writer.h"

#include <catch2/catch.hpp>
#include <thread>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

namespace {

struct Counter {
  Folder folder;
  std::unique_ptr<Writer> writer;
  explicit Counter(int group_size_max) {
    auto db = std::make_unique<Connection>("dbname=\"" + folder.db() + "\"");
    db->text("pragma journal_mode = wal");
    db->execute("create table numbers (n integer primary key, check (n <> 13))");
    writer = std::make_unique<Writer>(std::move(db), group_size_max,
                                      Writer::Clocks{[] { return Millis{1}; }, [] { return Millis{1}; }},
                                      [](const auto&, bool) {});
  }
  int stored() const {
    Connection db("dbname=\"" + folder.db() + "\"");
    int n = 0;
    db.one("select count(*) from numbers", std::tie(n));
    return n;
  }
};

}  // namespace

TEST_CASE("writes that fail, by a fault or by what they throw, do not spoil those that share their commit") {
  const int group_size_max = GENERATE(1, 3, 64);
  Counter c(group_size_max);
  std::atomic<int> durable{0}, thrown{0}, faults{0};
  std::vector<std::thread> threads;
  for (int i = 1; i <= 40; ++i) {
    threads.emplace_back([&, i] {
      try {
        c.writer->run([&](Transaction& t) {
          t.db.change("insert into numbers (n) values (:a)", i);
          if (i % 10 == 0) throw std::runtime_error("changed its mind");
        });
        ++durable;
      } catch (const StoreFault&) {
        ++faults;
      } catch (const std::runtime_error&) {
        ++thrown;
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(durable == 35);
  CHECK(thrown == 4);
  CHECK(faults == 1);
  CHECK(c.stored() == 35);
}

TEST_CASE("a writer that is put down finishes what it was handed") {
  Counter c(8);
  std::vector<std::thread> threads;
  std::atomic<int> started{0};
  for (int i = 100; i < 120; ++i) {
    threads.emplace_back([&, i] {
      c.writer->run([&](Transaction& t) {
        ++started;
        t.db.change("insert into numbers (n) values (:a)", i);
      });
    });
  }
  while (started < 5) std::this_thread::yield();
  for (auto& t : threads) t.join();
  c.writer.reset();
  CHECK(c.stored() == 20);
}
