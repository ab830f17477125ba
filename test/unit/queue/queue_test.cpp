#include "daemon/queue/queue.h"

#include <sys/mount.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "test/unit/store/support.h"

using namespace kbench;
using namespace kbench::queue;
using namespace kbench::store::test;
using grader::AttemptSource;
using Steady = std::chrono::steady_clock;

namespace {

struct World {
  Folder folder;
  store::Options store_options;
  Options options;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Queue> queue;
  World() {
    store_options.retry_delay = 20ms;
    options.sweep = 10ms;
    open();
  }
  void open() {
    queue.reset();
    store.reset();
    store = store::open_sqlite(folder.db(), store_options);
    queue = std::make_unique<Queue>(*store, options);
  }
  std::string submit() { return queue->submit(sample()).submission.id; }
};

template <class F>
void eventually(F condition) {
  for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(10ms);
  REQUIRE(condition());
}

}  // namespace

TEST_CASE("admission: created, replayed, in conflict, full, stopping") {
  World f;
  f.options.depth_max = 1;
  f.open();
  auto s = sample();
  s.idempotency_key = "k";
  const auto first = f.queue->submit(s);
  CHECK(first.how == Admitted::created);
  CHECK(f.queue->submit(s).how == Admitted::replayed);
  CHECK(f.queue->submit(s).submission.id == first.submission.id);
  s.body_hash = "other";
  CHECK(f.queue->submit(s).how == Admitted::key_conflict);
  CHECK(f.queue->submit(sample()).how == Admitted::queue_full);
  f.queue->stop();
  CHECK(f.queue->submit(sample()).how == Admitted::stopping);
}

TEST_CASE("a key whose first request is not answered yet is in flight, of the same submitter only") {
  World f;
  auto s = sample();
  s.idempotency_key = "k";
  auto other = sample("bob");
  other.idempotency_key = "k";
  std::atomic<bool> in_callback{false}, go_on{false};
  f.store->on_change([&](const std::string&) {  // holds the first answer back
    if (in_callback.exchange(true)) return;
    while (!go_on) std::this_thread::sleep_for(1ms);
  });
  Admission first{}, third{};
  std::thread a([&] { first = f.queue->submit(s); });
  eventually([&] { return in_callback.load(); });
  CHECK(f.queue->submit(s).how == Admitted::key_in_flight);
  std::thread b([&] { third = f.queue->submit(other); });
  go_on = true;
  a.join();
  b.join();
  CHECK(first.how == Admitted::created);
  CHECK(third.how == Admitted::created);
  CHECK(f.queue->submit(s).how == Admitted::replayed);
}

TEST_CASE("a waiting claim wakes when something comes, not before, and gives up in time") {
  World f;
  const auto source = f.queue->source("g1");
  const auto before = Steady::now();
  CHECK_FALSE(source->claim(wanted(), 50ms));
  CHECK(Steady::now() - before >= 50ms);
  std::optional<store::Lease> lease;
  std::thread grader([&] { lease = source->claim(wanted("not mine"), 20s); });
  std::this_thread::sleep_for(30ms);
  const std::string id = f.submit();
  grader.join();
  REQUIRE(lease);
  CHECK(lease->submission.id == id);
  CHECK(source->held().size() == 1);  // under the source's own name
}

TEST_CASE("stop ends waiting claims; what is held can be finished") {
  World f;
  const auto source = f.queue->source("g1");
  const std::string id = f.submit();
  const auto lease = source->claim(wanted(), 1s);
  std::optional<store::Lease> none;
  std::thread grader([&] { none = source->claim(wanted(), 60s); });
  std::this_thread::sleep_for(20ms);
  f.queue->stop();
  grader.join();
  CHECK_FALSE(none);
  f.store->submit(sample(), 10);
  CHECK_FALSE(source->claim(wanted(), 60s));
  CHECK(source->finish(id, lease->attempt, correct()));
}

TEST_CASE("renew: kept, cancel, lost") {
  World f;
  const auto source = f.queue->source("g1");
  const std::string id = f.submit();
  const auto lease = source->claim(wanted(), 1s);
  CHECK(source->renew(id, 1) == AttemptSource::Hold::kept);
  f.store->cancel(id);
  CHECK(source->renew(id, 1) == AttemptSource::Hold::cancel);
  CHECK(source->release(id, 1));
  CHECK(source->renew(id, 1) == AttemptSource::Hold::lost);
  CHECK(source->renew("s-none", 1) == AttemptSource::Hold::lost);
}

TEST_CASE("a cancel is heard of between two writes of the lease, and as long as it stands") {
  World f;
  const auto source = f.queue->source("g1");
  const std::string id = f.submit();
  REQUIRE(source->claim(wanted(), 1s));
  for (int i = 0; i < 2; ++i) CHECK(source->renew(id, 1) == AttemptSource::Hold::kept);
  f.store->cancel(id);
  for (int i = 0; i < 3; ++i) CHECK(source->renew(id, 1) == AttemptSource::Hold::cancel);
}

TEST_CASE(
    "a lease that is renewed outlives many sweeps; one that is not goes to the next grader, and its holder hears of "
    "it") {
  World f;
  f.options.lease = 300ms;
  f.open();
  const auto mine = f.queue->source("g1"), other = f.queue->source("g2");
  const std::string id = f.submit();
  REQUIRE(mine->claim(wanted(), 1s));
  const auto until = Steady::now() + 900ms;
  while (Steady::now() < until) {
    REQUIRE(mine->renew(id, 1) == AttemptSource::Hold::kept);
    std::this_thread::sleep_for(10ms);
  }
  const auto lease = other->claim(wanted(), 10s);  // waits for the expiry
  REQUIRE(lease);
  CHECK(lease->attempt == 2);
  CHECK(mine->renew(id, 1) == AttemptSource::Hold::lost);
  CHECK_FALSE(mine->event(id, 1, 1, "phase", "{}"));
  CHECK_FALSE(mine->finish(id, 1, correct()));
  CHECK(other->state(id, 2, store::State::measuring));
  CHECK(other->finish(id, 2, correct()));
}

TEST_CASE("a retry wakes a waiting claim when its delay is over") {
  World f;
  const auto source = f.queue->source("g1");
  const std::string id = f.submit();
  REQUIRE(source->claim(wanted(), 1s));
  CHECK(source->finish(id, 1, infra("engine: x")));
  const auto lease = source->claim(wanted(), 10s);
  REQUIRE(lease);
  CHECK(lease->attempt == 2);
}

TEST_CASE("the hub hears of every change in the store") {
  World f;
  const std::string id = f.submit();
  std::atomic<int> news{0};
  const auto subscription = f.queue->hub().subscribe(id, [&] { ++news; });
  f.store->cancel(id);
  CHECK(news == 1);
}

TEST_CASE("a result waits for a full disk to be mended; the fault is told meanwhile") {
  Folder folder;
  REQUIRE(mount("none", folder.path.c_str(), "tmpfs", 0, "size=2m") == 0);
  {
    const auto store = store::open_sqlite(folder.db());
    Options options;
    options.sweep = 10ms;
    options.lease = 200ms;
    Queue queue(*store, options);
    const auto source = queue.source("g1");
    const std::string id = queue.submit(sample()).submission.id;
    REQUIRE(source->claim(wanted(), 1s));
    const std::string ballast = (folder.path / "ballast").string();
    std::ofstream(ballast) << std::string(4'000'000, 'x');
    auto outcome = correct();
    outcome.log = std::string(600'000, 'x');
    std::atomic<bool> accepted{false};
    std::thread grader([&] { accepted = source->finish(id, 1, outcome); });
    std::this_thread::sleep_for(100ms);
    CHECK_FALSE(accepted);
    eventually([&] { return !queue.fault().empty(); });  // the sweep after the lease's end wants to write, too
    std::filesystem::remove(ballast);
    grader.join();
    eventually([&] { return queue.fault().empty(); });
    // Whoever came first once there was room, the sweep or the result: it ends once.
    const auto end = store->get(id);
    CHECK((accepted ? end->state == store::State::done : end->state == store::State::queued));
  }
  umount2(folder.path.c_str(), MNT_DETACH);
}
