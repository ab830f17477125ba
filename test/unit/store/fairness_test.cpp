#include <catch2/catch.hpp>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

namespace {

std::string claimed_from(Store& store) { return store.claim(wanted()).value().submission.submitter; }

}  // namespace

TEST_CASE("ten thousand waiting of one submitter delay another's single one by at most one grading") {
  Fixture f;
  for (int i = 0; i < 10'000; ++i) submit(*f.store, sample("crowd"));
  // One slot that is busy with the crowd when the other comes.
  const auto running = f.store->claim(wanted());
  const std::string single = submit(*f.store, sample("single"));
  f.store->finish(running->submission.id, 1, correct(), 3);
  CHECK(f.store->claim(wanted())->submission.id == single);
}

TEST_CASE("higher priority first, then the fewest running, then the one served longest ago, then age") {
  Fixture f;
  NewSubmission urgent = sample("alice");
  urgent.priority = 5;
  submit(*f.store, sample("alice"));
  submit(*f.store, sample("alice"));
  submit(*f.store, sample("bob"));
  submit(*f.store, sample("bob"));
  submit(*f.store, sample("carol"));
  submit(*f.store, urgent);
  CHECK(f.store->claim(wanted())->submission.priority == 5);  // alice runs 1
  CHECK(claimed_from(*f.store) == "bob");                     // 0 running, older than carol's; bob runs 1
  CHECK(claimed_from(*f.store) == "carol");                   // the only one with none
  CHECK(claimed_from(*f.store) == "alice");                   // one each: served longest ago
  CHECK(claimed_from(*f.store) == "bob");
  CHECK(claimed_from(*f.store) == "alice");
}

TEST_CASE("submitters with a backlog alternate, whoever handed in more or first") {
  Fixture f;
  for (int i = 0; i < 30; ++i) submit(*f.store, sample("a"));
  for (int i = 0; i < 10; ++i) submit(*f.store, sample("b"));
  for (int i = 0; i < 10; ++i) submit(*f.store, sample("c"));
  std::string order;
  for (int i = 0; i < 30; ++i) {
    const auto lease = f.store->claim(wanted());
    order += lease->submission.submitter;
    f.store->finish(lease->submission.id, lease->attempt, correct(), 3);
  }
  CHECK(order == "abcabcabcabcabcabcabcabcabcabc");
}

TEST_CASE("within a submitter the oldest goes first, also after a retry") {
  Fixture f;
  const std::string first = submit(*f.store), second = submit(*f.store), third = submit(*f.store);
  CHECK(f.store->claim(wanted())->submission.id == first);
  f.store->release(first, 1);
  CHECK(f.store->claim(wanted())->submission.id == first);
  CHECK(f.store->claim(wanted())->submission.id == second);
  f.store->finish(first, 2, infra("engine: x"), 3);
  f.clock.now += 60'000;
  f.store->expire_leases(3);  // second's lease went as well: both are back
  f.clock.now += 1;
  CHECK(f.store->claim(wanted())->submission.id == first);
  CHECK(f.store->claim(wanted())->submission.id == second);
  CHECK(f.store->claim(wanted())->submission.id == third);
}
