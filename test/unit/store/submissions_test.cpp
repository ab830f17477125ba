#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;
using nlohmann::json;

TEST_CASE("a submission comes back as it was handed in, files byte for byte") {
  Fixture f;
  NewSubmission s = sample();
  s.labels = {{"run", "r1"}, {"näme", "wért"}};
  s.files.push_back({"empty.h", ""});
  s.files.push_back({"big.cpp", std::string(3'000'000, 'x')});
  s.gpus = 2;
  s.gpu_model = "H200";
  s.priority = -3;
  const auto result = f.store->submit(s, 10);
  REQUIRE(result.how == Submitted::created);
  const auto got = f.store->get(result.submission.id);
  REQUIRE(got);
  CHECK(got->id.size() == 28);
  CHECK(got->state == State::queued);
  CHECK(got->labels == s.labels);
  CHECK(got->gpus == 2);
  CHECK(got->gpu_model == "H200");
  CHECK(got->priority == -3);
  CHECK(got->attempt == 0);
  CHECK(got->created == f.clock.now);
  CHECK_FALSE(got->reward);
  CHECK(result.submission.labels == s.labels);
  const auto files = f.store->files(got->id);
  REQUIRE(files.size() == 4);
  CHECK(files[0].path == "a.cpp");
  CHECK(files[1].content.size() == 3'000'000);
  CHECK(files[2].content.empty());
  CHECK(files[3].content == s.files[1].content);
  CHECK_FALSE(f.store->get("s-nothing"));
}

TEST_CASE("a submission that cannot be stored leaves nothing") {
  Fixture f;
  NewSubmission s = sample();
  s.files.push_back(s.files[0]);  // the same path twice
  CHECK_THROWS_AS(f.store->submit(s, 10), StoreFault);
  CHECK(f.store->list({}).submissions.empty());
  CHECK(f.store->counts().by_state["queued"] == 0);
  auto db = f.raw();
  CHECK(broken_invariant(db).empty());
  submit(*f.store);
}

TEST_CASE("the queue is bounded at its edge") {
  Fixture f;
  CHECK(f.store->submit(sample(), 2).how == Submitted::created);
  const auto second = f.store->submit(sample(), 2);
  CHECK(second.how == Submitted::created);
  CHECK(f.store->submit(sample(), 2).how == Submitted::queue_full);
  CHECK(f.store->list({}).submissions.size() == 2);
  f.store->cancel(second.submission.id);
  CHECK(f.store->submit(sample(), 2).how == Submitted::created);
}

TEST_CASE("an idempotency key replays the same body, refuses another, and is the submitter's own") {
  Fixture f;
  NewSubmission s = sample();
  s.idempotency_key = "k1";
  const auto first = f.store->submit(s, 1);
  const auto again = f.store->submit(s, 1);  // the queue is full: a replay does not care
  CHECK(again.how == Submitted::replayed);
  CHECK(again.submission.id == first.submission.id);
  s.body_hash = "b2";
  CHECK(f.store->submit(s, 10).how == Submitted::key_conflict);
  s.submitter = "bob";
  CHECK(f.store->submit(s, 10).how == Submitted::created);
  f.open();
  s.submitter = "alice";
  s.body_hash = "b1";
  CHECK(f.store->submit(s, 10).how == Submitted::replayed);
}

TEST_CASE("one key from many threads makes one submission") {
  Fixture f;
  NewSubmission s = sample();
  s.idempotency_key = "k";
  std::atomic<int> created{0}, replayed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const auto how = f.store->submit(s, 100).how;
      created += how == Submitted::created;
      replayed += how == Submitted::replayed;
    });
  }
  for (auto& t : threads) t.join();
  CHECK(created == 1);
  CHECK(replayed == 15);
}

TEST_CASE("lists: newest first, in pages without gaps or repeats, by every filter") {
  Fixture f;
  std::vector<std::string> ids;
  for (int i = 0; i < 25; ++i) {
    NewSubmission s = sample(i % 2 ? "bob" : "alice");
    s.task = i < 10 ? "t-a" : "t-b";
    s.labels = {{"n", std::to_string(i % 5)}};
    ids.push_back(submit(*f.store, s));
    f.clock.now += i % 3;
  }
  CHECK(std::is_sorted(ids.begin(), ids.end()));
  std::vector<std::string> seen;
  ListFilter filter;
  filter.limit = 10;
  int pages = 0;
  do {
    const Page page = f.store->list(filter);
    for (const auto& s : page.submissions) seen.push_back(s.id);
    filter.cursor = page.next;
    ++pages;
    if (pages == 1) submit(*f.store);  // a newer one does not disturb the walk
  } while (!filter.cursor.empty());
  CHECK(pages == 3);
  CHECK(std::vector<std::string>(ids.rbegin(), ids.rend()) == seen);

  ListFilter by_task;
  by_task.task = "t-a";
  CHECK(f.store->list(by_task).submissions.size() == 10);
  ListFilter by_label;
  by_label.label_key = "n";
  by_label.label_value = "3";
  by_label.submitter = "bob";
  const auto labelled = f.store->list(by_label).submissions;
  CHECK(labelled.size() == 3);
  CHECK(labelled[0].labels.at("n") == "3");
  f.store->cancel(ids[4]);
  ListFilter by_state;
  by_state.state = State::cancelled;
  REQUIRE(f.store->list(by_state).submissions.size() == 1);
  CHECK(f.store->list(by_state).submissions[0].id == ids[4]);
  ListFilter none;
  none.device = "cuda";
  CHECK(f.store->list(none).submissions.empty());
  const auto lease = f.store->claim(wanted());
  f.store->finish(lease->submission.id, 1, correct(), 3);
  ListFilter by_verdict;
  by_verdict.verdict = "correct";
  CHECK(f.store->list(by_verdict).submissions.size() == 1);
  CHECK(f.store->list(by_verdict).next.empty());
}

TEST_CASE("ids go on rising over a restart with the clock set back") {
  Fixture f;
  std::vector<std::string> ids{submit(*f.store)};
  for (int restart = 0; restart < 3; ++restart) {
    f.clock.now -= 3'600'000;
    f.open();
    for (int i = 0; i < 2; ++i) ids.push_back(submit(*f.store));
  }
  CHECK(std::is_sorted(ids.begin(), ids.end()));
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == ids.size());
  CHECK(f.store->claim(wanted())->submission.id == ids[0]);
}

TEST_CASE("a cursor that is none of ours is refused") {
  Fixture f;
  ListFilter filter;
  for (const char* bad : {"x", "s-0123", "s-0123456789ABCDEFGHJKMNPQRU", "s-0123456789ABCDEFGHJKMNPQR' OR 1"}) {
    filter.cursor = bad;
    CHECK_THROWS_AS(f.store->list(filter), BadCursor);
  }
}

TEST_CASE("cancel in every state") {
  Fixture f;
  CHECK(f.store->cancel("s-none") == Cancelled::unknown);
  const std::string queued = submit(*f.store);
  CHECK(f.store->cancel(queued) == Cancelled::done);
  CHECK(f.store->get(queued)->state == State::cancelled);
  CHECK(f.store->cancel(queued) == Cancelled::already_final);
  CHECK_FALSE(f.store->claim(wanted()));

  for (const State state : {State::preparing, State::ready, State::measuring}) {
    const std::string id = submit(*f.store);
    const auto lease = f.store->claim(wanted());
    REQUIRE(lease);
    f.store->set_state(id, lease->attempt, state);
    CHECK(f.store->cancel(id) == Cancelled::requested);
    CHECK(f.store->cancel(id) == Cancelled::requested);
    CHECK(f.store->get(id)->cancel_requested);
    CHECK(f.store->get(id)->state == state);
    Outcome o{};
    o.kind = Outcome::Kind::cancelled;
    o.log = "half a log";
    CHECK(f.store->finish(id, lease->attempt, o, 3));
    CHECK(f.store->get(id)->state == State::cancelled);
    CHECK(f.store->log(id) == "half a log");
  }
  const std::string id = submit(*f.store);
  f.store->finish(id, f.store->claim(wanted())->attempt, correct(), 3);
  CHECK(f.store->cancel(id) == Cancelled::already_final);
  CHECK(f.store->get(id)->state == State::done);
}

TEST_CASE("a queued submission's cancel and its claim: one of them wins") {
  Fixture f;
  for (int round = 0; round < 50; ++round) {
    const std::string id = submit(*f.store);
    Cancelled cancelled{};
    std::optional<Lease> lease;
    std::thread a([&] { cancelled = f.store->cancel(id); });
    std::thread b([&] { lease = f.store->claim(wanted()); });
    a.join();
    b.join();
    if (lease) {
      CHECK(cancelled == Cancelled::requested);
      f.store->finish(id, lease->attempt, correct(), 3);
    } else {
      CHECK(cancelled == Cancelled::done);
    }
  }
}

TEST_CASE("counts follow the states") {
  Fixture f;
  const std::string first = submit(*f.store);
  f.clock.now += 1000;
  submit(*f.store);
  auto counts = f.store->counts();
  CHECK(counts.by_state["queued"] == 2);
  CHECK(counts.oldest_queued == f.clock.now - 1000);
  f.store->claim(wanted());
  f.store->set_state(first, 1, State::measuring);
  counts = f.store->counts();
  CHECK(counts.by_state["queued"] == 1);
  CHECK(counts.by_state["measuring"] == 1);
  CHECK(counts.oldest_queued == f.clock.now);
}

TEST_CASE("changes are announced after they are durable, and what became claimable is") {
  Fixture f;
  std::mutex mutex;
  std::multiset<std::string> changed;
  int claimable = 0;
  f.store->on_change([&](const std::string& id) {
    const std::lock_guard lock(mutex);
    changed.insert(id);
    CHECK(f.store->get(id));
  });
  f.store->on_claimable([&] { ++claimable; });
  const std::string id = submit(*f.store);
  CHECK(changed.count(id) == 1);
  CHECK(claimable == 1);
  f.store->claim(wanted());
  f.store->append_event(id, 1, 1, "phase", "{}");
  f.store->append_event(id, 1, 1, "phase", "{}");  // skipped: nothing changed
  CHECK(changed.count(id) == 3);
  f.store->release(id, 1);
  CHECK(claimable == 2);
}

TEST_CASE("ids sort by age even when the clock goes back") {
  Fixture f;
  const std::string a = submit(*f.store);
  f.clock.now -= 10'000;
  const std::string b = submit(*f.store);
  f.clock.now += 20'000;
  const std::string c = submit(*f.store);
  CHECK(a < b);
  CHECK(b < c);
  CHECK(f.store->claim(wanted())->submission.id == a);
}
