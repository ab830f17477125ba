// Lists over a long history: what they find, what they cost, and whom they leave alone.
#include <catch2/catch.hpp>
#include <map>
#include <thread>

#include "daemon/store/sql_store.h"
#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;
using Steady = std::chrono::steady_clock;

namespace {

struct Walked {
  std::vector<std::string> ids;
  int pages = 0;
};
Walked walk(Store& store, ListFilter filter) {
  Walked walked;
  do {
    const Page page = store.list(filter);
    for (const Submission& s : page.submissions) walked.ids.push_back(s.id);
    filter.cursor = page.next;
    ++walked.pages;
  } while (!filter.cursor.empty() && walked.pages < 1000);
  return walked;
}

}  // namespace

TEST_CASE("a list looks at list_rows_max submissions, at its edge; where it stopped the next page goes on") {
  Fixture f;
  f.options.list_rows_max = 100;
  f.open();
  auto db = f.raw();
  fill(db, 100);
  ListFilter filter;
  filter.limit = 7;
  filter.device = "cuda";
  CHECK(f.store->list(filter).submissions.empty());
  CHECK(f.store->list(filter).next == "s-00000000000000000000000001");  // all were looked at, not that there is no more
  CHECK(walk(*f.store, filter).pages == 2);
  f.options.list_rows_max = 101;
  f.open();
  CHECK(f.store->list(filter).next.empty());
}

TEST_CASE("whatever the filters, the pages together are what matches, newest first") {
  Fixture f;
  f.options.list_rows_max = GENERATE(1, 9, 64, 20'000);
  f.open();
  auto db = f.raw();
  fill(db, 120);
  db.execute(
      "update submissions set task = 'rare' where id in ('s-00000000000000000000000007', "
      "'s-00000000000000000000000093')");
  db.execute("update submissions set verdict = 'incorrect', device = 'cuda' where created % 5 = 0");
  db.execute("update submissions set state = 'failed' where created % 7 = 0");
  db.execute("insert into labels (submission, name, value) select id, 'run', created % 4 from submissions");
  for (int mask = 0; mask < 64; ++mask) {
    ListFilter filter;
    filter.limit = 5;
    std::string where = "1 = 1";
    const auto ask = [&](int bit, const std::string& condition, const auto& set) {
      if (!(mask & bit)) return;
      where += " and " + condition;
      set();
    };
    ask(1, "task = 't-1'", [&] { filter.task = "t-1"; });
    ask(2, "submitter = 'old'", [&] { filter.submitter = "old"; });
    ask(4, "verdict = 'incorrect'", [&] { filter.verdict = "incorrect"; });
    ask(8, "device = 'cuda'", [&] { filter.device = "cuda"; });
    ask(16, "state = 'done'", [&] { filter.state = State::done; });
    ask(32, "id in (select submission from labels where name = 'run' and value = '2')", [&] {
      filter.label_key = "run";
      filter.label_value = "2";
    });
    std::vector<std::string> matching;
    std::string id;
    db.each("select id from submissions where " + where + " order by id desc", std::tie(id),
            [&] { matching.push_back(id); });
    INFO(where);
    CHECK(walk(*f.store, filter).ids == matching);
  }
  ListFilter rare;
  rare.task = "rare";
  rare.state = State::done;
  CHECK(walk(*f.store, rare).ids.size() == 1);
}

TEST_CASE("the most telling filter leads: few that match among many are found at once") {
  Fixture f;
  f.options.list_rows_max = 1'000;
  f.open();
  auto db = f.raw();
  fill(db, 20'000);
  db.execute("update submissions set verdict = 'incorrect' where id = 's-00000000000000000000000007'");
  ListFilter filter;
  filter.state = State::done;
  filter.submitter = "old";
  filter.verdict = "incorrect";
  CHECK(walk(*f.store, filter).pages == 1);
  CHECK(walk(*f.store, filter).ids.size() == 1);
  filter.verdict = "zzz";
  CHECK(walk(*f.store, filter).pages == 1);
}

TEST_CASE("connections are lent in the order of asking: who gives one back and asks again comes last") {
  Folder folder;
  std::vector<std::unique_ptr<Connection>> one;
  one.push_back(std::make_unique<Connection>("dbname=\"" + folder.db() + "\""));
  Readers readers(std::move(one));
  std::string order;
  std::vector<std::thread> threads;
  readers.use([&](Connection&) {
    for (const char name : {'a', 'b', 'c'}) {
      threads.emplace_back([&readers, &order, name] { readers.use([&](Connection&) { order += name; }); });
      std::this_thread::sleep_for(50ms);
    }
  });
  readers.use([&](Connection&) { order += 'd'; });
  for (auto& t : threads) t.join();
  CHECK(order == "abcd");
}

TEST_CASE("lists without end keep nobody else from reading") {
  Fixture f;
  {
    auto db = f.raw();
    fill(db, 100'000);
  }
  const std::string id = submit(*f.store);
  std::atomic<bool> stop{false};
  std::vector<std::thread> lists;
  for (int i = 0; i < 16; ++i) {
    lists.emplace_back([&] {
      ListFilter filter;
      filter.state = State::done;
      filter.device = "cuda";
      while (!stop) f.store->list(filter);
    });
  }
  std::this_thread::sleep_for(200ms);
  const auto start = Steady::now();
  for (int i = 0; i < 10; ++i) CHECK(f.store->get(id));
  const auto took = Steady::now() - start;
  stop = true;
  for (auto& t : lists) t.join();
  CHECK(took < 500ms);
}
