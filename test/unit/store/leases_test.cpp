#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;
using nlohmann::json;

TEST_CASE("a life from claim to verdict, with every event in order") {
  Fixture f;
  NewSubmission s = sample();
  s.labels = {{"run", "r1"}};
  const std::string id = submit(*f.store, s);
  const auto lease = f.store->claim(wanted("g7"));
  REQUIRE(lease);
  CHECK(lease->submission.id == id);
  CHECK(lease->submission.state == State::preparing);
  CHECK(lease->submission.labels.at("run") == "r1");
  CHECK(lease->attempt == 1);
  CHECK(lease->expires == f.clock.now + 30'000);
  CHECK(lease->files.size() == 2);
  CHECK(lease->files[1].content == s.files[1].content);
  f.clock.now += 5;
  CHECK(f.store->set_state(id, 1, State::ready));
  CHECK(f.store->append_event(id, 1, 1, "started", R"({"seq":1})"));
  CHECK(f.store->set_state(id, 1, State::measuring));
  CHECK(f.store->set_state(id, 1, State::ready));  // said before: nothing
  CHECK(f.store->get(id)->state == State::measuring);
  CHECK_THROWS_AS(f.store->set_state(id, 1, State::done), std::invalid_argument);
  CHECK(f.store->finish(id, 1, correct(12.5), 3));

  const auto got = f.store->get(id);
  CHECK(got->state == State::done);
  CHECK(got->verdict == "correct");
  CHECK(*got->reward == 12.5);
  CHECK(*got->interval_low == 11.5);
  CHECK(got->rank_eligible);
  CHECK(got->rank_reason == "complete");
  CHECK(got->metric == "GB/s");
  CHECK(got->started == f.clock.now - 5);
  CHECK(got->finished == f.clock.now);
  CHECK(f.store->details(id) == R"({"runs":5})");
  CHECK(f.store->log(id) == "fine");

  const auto events = f.store->events(id, 0, 100);
  std::string story;
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i].seq == static_cast<std::int64_t>(i + 1));
    const json body = json::parse(events[i].json);
    story += events[i].type + (events[i].type == "state" ? ":" + body["state"].get<std::string>() : "") + " ";
  }
  CHECK(story == "state:queued state:preparing state:ready started state:measuring state:done result ");
  const json result = json::parse(events.back().json);
  CHECK(result["verdict"] == "correct");
  CHECK(result["reward"] == 12.5);
  CHECK(result["rank_eligible"] == true);
  CHECK(result["interval"] == json{11.5, 13.5});
  CHECK(f.store->events(id, 5, 1).at(0).seq == 6);
  CHECK(f.store->events(id, 7, 10).empty());
}

TEST_CASE("a replayed event is skipped, the daemon's own are not") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  for (int i = 0; i < 3; ++i) {
    CHECK(f.store->append_event(id, 1, 1, "phase", "{}"));
    CHECK(f.store->append_event(id, 1, 2, "phase", "{}"));
    CHECK(f.store->append_event(id, 1, 0, "note", "{}"));
  }
  const auto events = f.store->events(id, 2, 100);
  CHECK(events.size() == 5);
  for (std::size_t i = 0; i < events.size(); ++i) CHECK(events[i].seq == static_cast<std::int64_t>(i + 3));
}

TEST_CASE("finish twice: the second is refused, and changes nothing") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  CHECK(f.store->finish(id, 1, correct(1), 3));
  CHECK_FALSE(f.store->finish(id, 1, correct(2), 3));
  CHECK(*f.store->get(id)->reward == 1);
  CHECK_FALSE(f.store->append_event(id, 1, 9, "late", "{}"));
  CHECK_FALSE(f.store->set_state(id, 1, State::measuring));
  CHECK(f.store->renew(id, 1, 30s) == Renewed::lost);
  CHECK_FALSE(f.store->release(id, 1));
}

TEST_CASE("a stale attempt is refused everywhere") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted("g1"));
  f.clock.now += 30'000;
  CHECK(f.store->expire_leases(3) == 1);
  CHECK(f.store->get(id)->state == State::queued);
  // Between the expiry and the next claim, too.
  CHECK_FALSE(f.store->finish(id, 1, correct(), 3));
  CHECK(f.store->renew(id, 1, 30s) == Renewed::lost);
  const auto second = f.store->claim(wanted("g2"));
  REQUIRE(second);
  CHECK(second->attempt == 2);
  CHECK(f.store->renew(id, 1, 30s) == Renewed::lost);
  CHECK_FALSE(f.store->set_state(id, 1, State::measuring));
  CHECK_FALSE(f.store->append_event(id, 1, 1, "phase", "{}"));
  CHECK_FALSE(f.store->finish(id, 1, correct(1), 3));
  CHECK_FALSE(f.store->finish(id, 1, infra("engine: gone"), 3));
  CHECK_FALSE(f.store->release(id, 1));
  CHECK_FALSE(f.store->finish(id, 3, correct(1), 3));  // one that never was
  CHECK(f.store->finish(id, 2, correct(2), 3));
  CHECK(*f.store->get(id)->reward == 2);
}

TEST_CASE("a renewed lease does not expire, at its edge") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  f.clock.now += 20'000;
  CHECK(f.store->renew(id, 1, 30s) == Renewed::kept);
  f.clock.now += 29'999;
  CHECK(f.store->expire_leases(3) == 0);
  f.clock.now += 1;
  CHECK(f.store->expire_leases(3) == 1);
}

TEST_CASE("a clock that is set, to whenever, neither ends a lease nor prolongs it, nor a retry's delay") {
  const Millis set_by = GENERATE(60'000, -3'600'000);
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  f.clock.set_by = set_by;
  CHECK(f.store->expire_leases(3) == 0);
  f.clock.now += 20'000;
  CHECK(f.store->renew(id, 1, 30s) == Renewed::kept);
  f.clock.set_by = 0;
  f.clock.now += 29'999;
  CHECK(f.store->expire_leases(3) == 0);
  f.clock.set_by = set_by;
  f.clock.now += 1;
  CHECK(f.store->expire_leases(3) == 1);
  CHECK(f.store->get(id)->updated == f.clock.now + set_by);  // what users see is the clock's
  REQUIRE(f.store->claim(wanted()));
  f.store->finish(id, 2, infra("engine: x"), 3);
  const auto delay = 2 * f.options.retry_delay.count();
  CHECK(json::parse(f.store->events(id, 0, 100).back().json)["not_before"] == f.clock.now + set_by + delay);
  f.clock.set_by = -set_by;
  f.clock.now += delay - 1;
  CHECK_FALSE(f.store->claim(wanted()));
  f.clock.now += 1;
  CHECK(f.store->claim(wanted()));
}

TEST_CASE("a clock that went back between two lives makes no retry wait longer than the longest delay") {
  Fixture f;
  f.options.retry_delay_max = f.options.retry_delay = 10s;
  f.open();
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  f.store->finish(id, 1, infra("engine: x"), 3);
  f.clock.now -= 3'600'000;
  f.open();
  f.clock.now += 9'999;
  CHECK_FALSE(f.store->claim(wanted()));
  f.clock.now += 1;
  CHECK(f.store->claim(wanted()));
}

TEST_CASE("a renewal tells of a cancel") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  f.store->cancel(id);
  CHECK(f.store->renew(id, 1, 30s) == Renewed::cancel);
}

TEST_CASE("the budget: retries with growing delays, then infra_error with the last cause") {
  Fixture f;
  f.options.retry_delay = 1s;
  f.options.retry_delay_max = 1500ms;
  f.open();
  int claimable = 0;
  f.store->on_claimable([&] { ++claimable; });
  const std::string id = submit(*f.store);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const auto lease = f.store->claim(wanted());
    REQUIRE(lease);
    CHECK(lease->attempt == attempt);
    CHECK(f.store->finish(id, attempt, infra("engine: fault " + std::to_string(attempt)), 4));
    CHECK(f.store->get(id)->state == State::queued);
    CHECK_FALSE(f.store->claim(wanted()));
    f.clock.now += attempt == 1 ? 999 : 1499;
    CHECK_FALSE(f.store->claim(wanted()));
    const int before = claimable;
    f.clock.now += 1;
    if (attempt == 2) {
      f.store->expire_leases(4);  // the ticker makes it claimable
      CHECK(claimable == before + 1);
    }
  }
  REQUIRE(f.store->claim(wanted()));
  CHECK(f.store->finish(id, 4, infra("gpu: lost"), 4));
  const auto got = f.store->get(id);
  CHECK(got->state == State::failed);
  CHECK(got->verdict == "infra_error");
  CHECK(got->reason == "gpu: lost");
  CHECK_FALSE(got->reward);
  CHECK_FALSE(f.store->claim(wanted()));
}

TEST_CASE("a fault called final is not tried again") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  CHECK(f.store->finish(id, 1, infra("image: does not build", true), 3));
  CHECK(f.store->get(id)->state == State::failed);
  CHECK(f.store->get(id)->reason == "image: does not build");
}

TEST_CASE("expired leases spend the budget too, hundreds at once") {
  Fixture f;
  std::vector<std::string> ids;
  for (int i = 0; i < 150; ++i) ids.push_back(submit(*f.store));
  for (int i = 0; i < 150; ++i) f.store->claim(wanted());
  f.clock.now += 30'000;
  CHECK(f.store->expire_leases(2) == 150);
  for (int i = 0; i < 150; ++i) REQUIRE(f.store->claim(wanted()));
  f.clock.now += 30'000;
  CHECK(f.store->expire_leases(2) == 150);
  CHECK(f.store->counts().by_state["failed"] == 150);
  CHECK(f.store->get(ids[7])->reason == "queue: the lease of attempt 2 expired");
}

TEST_CASE("given back: claimable at once, under a new number, without spending the budget") {
  Fixture f;
  const std::string id = submit(*f.store);
  for (int attempt = 1; attempt <= 5; ++attempt) {
    REQUIRE(f.store->claim(wanted())->attempt == attempt);
    CHECK(f.store->release(id, attempt));
  }
  f.store->claim(wanted());
  CHECK(f.store->finish(id, 6, infra("engine: x"), 2));
  CHECK(f.store->get(id)->state == State::queued);
}

TEST_CASE("a claim whose files cannot be read gives the submission back at once") {
  Fixture f;
  const std::string id = submit(*f.store);
  auto db = f.raw();
  db.execute("alter table files rename to files_away");
  CHECK_THROWS_AS(f.store->claim(wanted()), StoreFault);
  CHECK(f.store->get(id)->state == State::queued);
  db.execute("alter table files_away rename to files");
  REQUIRE(f.store->claim(wanted()));
  CHECK(f.store->finish(id, 2, infra("engine: x"), 2));  // the first did not count
  CHECK(f.store->get(id)->state == State::queued);
}

TEST_CASE("given back for ever is not possible") {
  Fixture f;
  const std::string id = submit(*f.store);
  for (int attempt = 1; attempt <= 100; ++attempt) {
    REQUIRE(f.store->claim(wanted()));
    CHECK(f.store->release(id, attempt));
  }
  CHECK(f.store->get(id)->state == State::failed);
  CHECK(f.store->get(id)->verdict == "infra_error");
}

TEST_CASE("a requested cancel is carried out by whatever ends the attempt") {
  Fixture f;
  SECTION("lease expired") {
    const std::string id = submit(*f.store);
    f.store->claim(wanted());
    f.store->cancel(id);
    f.clock.now += 30'000;
    f.store->expire_leases(3);
    CHECK(f.store->get(id)->state == State::cancelled);
  }
  SECTION("given back") {
    const std::string id = submit(*f.store);
    f.store->claim(wanted());
    f.store->cancel(id);
    CHECK(f.store->release(id, 1));
    CHECK(f.store->get(id)->state == State::cancelled);
  }
  SECTION("infrastructure fault") {
    const std::string id = submit(*f.store);
    f.store->claim(wanted());
    f.store->cancel(id);
    CHECK(f.store->finish(id, 1, infra("engine: x"), 3));
    CHECK(f.store->get(id)->state == State::cancelled);
  }
  SECTION("the verdict was there first") {
    const std::string id = submit(*f.store);
    f.store->claim(wanted());
    f.store->cancel(id);
    CHECK(f.store->finish(id, 1, correct(), 3));
    CHECK(f.store->get(id)->state == State::done);
  }
}

TEST_CASE("a cancel of one that waits for its retry is at once") {
  Fixture f;
  const std::string id = submit(*f.store);
  f.store->claim(wanted());
  f.store->finish(id, 1, infra("engine: x"), 3);
  CHECK(f.store->cancel(id) == Cancelled::done);
  f.clock.now += 1'000'000;
  CHECK_FALSE(f.store->claim(wanted()));
  CHECK(f.store->expire_leases(3) == 0);
}

TEST_CASE("a grader finds its leases again after a restart") {
  Fixture f;
  const std::string a = submit(*f.store), b = submit(*f.store), c = submit(*f.store);
  f.store->claim(wanted("g1"));
  f.store->claim(wanted("g2"));
  f.store->claim(wanted("g1"));
  f.store->finish(c, 1, correct(), 3);
  f.open();
  const auto held = f.store->leases_of("g1");
  REQUIRE(held.size() == 1);
  CHECK(held[0].submission.id == a);
  CHECK(held[0].submission.state == State::preparing);
  CHECK(held[0].attempt == 1);
  CHECK(held[0].expires == f.clock.now + 30'000);
  CHECK(f.store->leases_of("g2").at(0).submission.id == b);
  CHECK(f.store->leases_of("g3").empty());
}

TEST_CASE("matching: nothing blocks one that fits") {
  Fixture f;
  NewSubmission big = sample();
  big.device = "cuda";
  big.gpus = 8;
  big.priority = 9;
  NewSubmission other = big;
  other.gpus = 1;
  other.gpu_model = "B200";
  NewSubmission fits = big;
  fits.gpus = 1;
  fits.gpu_model = "H200";
  fits.priority = 0;
  const std::string a = submit(*f.store, big), b = submit(*f.store, other), c = submit(*f.store, fits),
                    d = submit(*f.store);
  const Wanted grader{"g", {"cuda"}, 2, {"H200"}, 30s};
  CHECK(f.store->claim(grader)->submission.id == c);
  CHECK_FALSE(f.store->claim(grader));
  CHECK(f.store->claim(wanted())->submission.id == d);
  CHECK(f.store->claim({"g", {"cuda"}, 8, {}, 30s})->submission.id == a);
  CHECK(f.store->claim({"g", {"cuda", "cpu"}, 1, {"H100", "B200"}, 30s})->submission.id == b);
}

TEST_CASE("many graders claim at once: each submission goes to one") {
  Fixture f;
  constexpr int kSubmissions = 120;
  for (int i = 0; i < kSubmissions; ++i) submit(*f.store, sample("s" + std::to_string(i % 7)));
  std::mutex mutex;
  std::set<std::string> claimed;
  int claims = 0;
  std::vector<std::thread> graders;
  for (int g = 0; g < 8; ++g) {
    graders.emplace_back([&, g] {
      while (const auto lease = f.store->claim(wanted("g" + std::to_string(g)))) {
        const std::lock_guard lock(mutex);
        claimed.insert(lease->submission.id);
        ++claims;
      }
    });
  }
  for (auto& g : graders) g.join();
  CHECK(claims == kSubmissions);
  CHECK(claimed.size() == kSubmissions);
  auto db = f.raw();
  CHECK(broken_invariant(db).empty());
}
