// Rule 7 and a kbenchd that died: what is found at the start, and after the Engine was away.
#include "daemon/grader/specs.h"
#include "test/unit/grader/lab.h"

using namespace kbench;
using namespace kbench::test;

namespace {

// A container as an attempt of `owner` would have made it.
std::string leave(Lab& lab, const std::string& owner, const std::string& submission, int attempt,
                  const std::string& name = "") {
  engine::Engine engine(lab.engine_options);
  Options options = lab.options;
  options.name = options.owner = owner;
  std::filesystem::create_directories(lab.folder + "/bind");
  const std::string bind = lab.folder + "/bind";
  engine::ContainerSpec spec = measure_spec(
      options, {owner, submission, attempt},
      {engine.image("kbench/base:cpu")->id, "cpu", "", bind, bind, bind, "", 200'000, {"uids-200000"}}, "");
  if (!name.empty()) spec.name = name;
  const std::string id = engine.create(spec);
  engine.start(id);
  return id;
}

bool there(const Lab& lab, const std::string& id) {
  for (const FakeJob& job : lab.fake.containers())
    if (job.id == id) return true;
  return false;
}

}  // namespace

TEST_CASE("rule 7: containers that are nobody's go, others stay, leases are given back, folders are emptied") {
  Lab lab;
  lab.behave("measure", until_killed);
  const std::string id = lab.submit();
  store::Wanted wanted{};
  wanted.devices = {"cpu"};
  const store::Lease lease = lab.source->claim(wanted, milliseconds(1000)).value();  // by a kbenchd that died
  CHECK(lab.source->state(id, lease.attempt, State::measuring));
  const std::string ours = leave(lab, "lab", id, lease.attempt), unknown = leave(lab, "lab", "s-of-long-ago", 4);
  const std::string theirs = leave(lab, "other", "s-x", 1), inherited = leave(lab, "lab", "s-y", 1, "an-agents-own");
  write(lab.options.work_folder + "/" + id + "-1/submission/secret", "x");
  lab.behave("measure", measures);
  lab.start();
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "correct");
  CHECK(done.attempt == 2);
  CHECK(lab.count_events(id, "result") == 1);
  CHECK_FALSE(there(lab, ours));
  CHECK_FALSE(there(lab, unknown));
  CHECK(there(lab, theirs));
  CHECK(there(lab, inherited));
  CHECK_FALSE(std::filesystem::exists(lab.options.work_folder + "/" + id + "-1"));
  CHECK_FALSE(lab.source->finish(id, lease.attempt, store::Outcome{}));  // the dead one's attempt is fenced out
}

TEST_CASE("rule 7: after the Engine was away its list is the truth, whatever events were missed") {
  Lab lab;
  lab.options.reconcile_every = std::chrono::hours(1);
  lab.start();
  CHECK(lab.wait(lab.submit()).verdict == "correct");
  lab.behave("measure", until_killed);
  const std::string orphan = leave(lab, "lab", "s-orphan", 1);
  std::this_thread::sleep_for(milliseconds(100));
  CHECK(there(lab, orphan));
  lab.fake.restart(milliseconds(20), true);
  lab.wait_until([&] { return !there(lab, orphan); });
}

TEST_CASE("rule 7: a sweep from time to time finds what a failed removal left") {
  Lab lab;
  lab.options.reconcile_every = milliseconds(50);
  lab.fake.script("DELETE /containers/", fake_error(500, "device or resource busy"), 12);
  lab.start();
  CHECK(lab.wait(lab.submit()).verdict == "correct");
  lab.wait_until([&] { return lab.fake.containers().empty(); });
}

TEST_CASE("what builds have left goes at the start, and after the Engine was away") {
  Lab lab;
  const std::string ours = "kbench.image=env,kbench.image-owner=lab";
  const auto is_there = [&](const std::string& id) { return engine::Engine(lab.engine_options).image(id).has_value(); };
  const std::string first = lab.fake.add_image("", ours);
  lab.start();
  lab.wait_until([&] { return !is_there(first); });
  const std::string second = lab.fake.add_image("", ours);
  lab.fake.restart(milliseconds(20), true);
  lab.wait_until([&] { return !is_there(second); });
}

TEST_CASE("a container from before that cannot be ended takes its slot, and only that, out of use") {
  Lab lab;
  lab.slot_options.cpu_slots = {"", ""};
  lab.options.reconcile_every = milliseconds(50);
  lab.behave("measure", [](const FakeJob& job, std::stop_token killed) {
    return job.labels.at("kbench.submission") == "s-stuck" ? until_killed(job, killed) : measures(job, killed);
  });
  const std::string stuck = leave(lab, "lab", "s-stuck", 1);
  const std::string gone = leave(lab, "lab", "s-zzz", 1);
  const auto answer = [&](const FakeReply& refusal) {
    lab.fake.script("DELETE /containers/" + stuck, refusal, 1'000'000);
    lab.fake.script("POST /containers/" + stuck + "/kill", refusal, 1'000'000);
  };
  SECTION("refused") { answer(fake_error(500, "did not receive an exit event")); }
  SECTION("without an answer") { answer({.delay = milliseconds(1200), .drop = true}); }
  lab.start();
  CHECK(lab.wait(lab.submit()).verdict == "correct");
  CHECK(there(lab, stuck));
  CHECK_FALSE(there(lab, gone));
  const auto slots = lab.grader->slots();
  CHECK(slots[0].state == gpu::SlotState::quarantined);
  CHECK(slots[0].reason.starts_with("unkillable: kbench-s-stuck-1-measure: "));
  CHECK(slots[1].reason.empty());
  CHECK(lab.grader->faults().empty());
  lab.grader->release_quarantine(0);  // too early
  lab.wait_until([&] { return lab.grader->slots()[0].state == gpu::SlotState::quarantined; });
}

TEST_CASE("a daemon's containers are known by its work folder, after a restart too") {
  Lab lab;
  lab.options.owner.clear();
  std::mutex mutex;
  std::set<std::string> owners;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    const std::lock_guard lock(mutex);
    owners.insert(job.labels.at("kbench.owner"));
    return measures(job, killed);
  });
  lab.start();
  CHECK(lab.wait(lab.submit()).verdict == "correct");
  lab.grader.reset();
  lab.start();
  CHECK(lab.wait(lab.submit()).verdict == "correct");
  lab.grader.reset();
  lab.options.work_folder += "2";
  lab.start();
  CHECK(lab.wait(lab.submit()).verdict == "correct");
  CHECK(owners.size() == 2);
  for (const std::string& owner : owners) CHECK(owner.size() == 16);
}

TEST_CASE("a work folder serves one grader at a time") {
  Lab lab;
  lab.start();
  CHECK_THROWS_WITH(Grader(lab.options, lab.engine_options, lab.slot_options, lab.attach_options, lab.tasks,
                           *lab.source, nullptr, [](const std::string&) {}),
                    Catch::Contains("another kbenchd"));
  lab.grader.reset();
  lab.start();
  lab.options.seccomp_file = "/nonexistent";
  lab.grader.reset();
  CHECK_THROWS_WITH(lab.start(), Catch::Contains("/nonexistent"));
}

TEST_CASE("storms: the Engine restarts again and again, every submission ends once") {
  Lab lab;
  lab.slot_options.cpu_slots = {"", ""};
  lab.behave("measure", [](const FakeJob& job, std::stop_token killed) {
    for (int i = 0; i < 20 && !killed.stop_requested(); ++i) std::this_thread::sleep_for(milliseconds(1));
    return killed.stop_requested() ? FakeEnd{} : measures(job, killed);
  });
  lab.start();
  std::vector<std::string> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(lab.submit());
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(120));
    lab.fake.restart(milliseconds(30), i % 2 == 0);
    if (i == 2) {
      lab.grader.reset();
      lab.start();
    }
  }
  int correct = 0;
  for (const std::string& id : ids) {
    const store::Submission done = lab.wait(id);
    CHECK(is_final(done.state));
    CHECK(lab.count_events(id, "result") == 1);
    CHECK((done.verdict == "correct" || done.verdict == "infra_error"));
    correct += done.verdict == "correct";
  }
  CHECK(correct > 15);  // few use up their attempts
  lab.wait_until([&] { return lab.fake.containers().empty(); });
  lab.check_clean();
}
