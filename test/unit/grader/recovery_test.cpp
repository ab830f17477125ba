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
  engine::ContainerSpec spec =
      measure_spec(options, {owner, submission, attempt},
                   {engine.image("kbench/base:cpu")->id, "cpu", "", bind, bind, bind, "", 200'000}, "");
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
  for (const std::string& id : ids) {
    const store::Submission done = lab.wait(id);
    CHECK(is_final(done.state));
    CHECK(lab.count_events(id, "result") == 1);
    CHECK((done.verdict == "correct" || done.verdict == "infra_error"));
  }
  lab.wait_until([&] { return lab.fake.containers().empty(); });
  lab.check_clean();
}
