// Rule 10: what is wrong with the machine is never the submission's fault.
#include "test/unit/grader/lab.h"

using namespace kbench;
using namespace kbench::test;

namespace {

// The source, with faults put in between.
class Faulty : public AttemptSource {
 public:
  explicit Faulty(AttemptSource& inner) : inner_(inner) {}
  std::atomic<int> fail_states = 0, fail_claims = 0;
  std::atomic<bool> lost = false;
  std::atomic<int> finished = 0, released = 0;

  std::optional<store::Lease> claim(const store::Wanted& wanted, milliseconds wait) override {
    if (fail_claims-- > 0) throw store::StoreFault("claim");
    return inner_.claim(wanted, wait);
  }
  Hold renew(const std::string& id, int attempt) override { return lost ? Hold::lost : inner_.renew(id, attempt); }
  bool state(const std::string& id, int attempt, State state) override {
    if (fail_states-- > 0) throw store::StoreFault("state");
    return inner_.state(id, attempt, state);
  }
  bool event(const std::string& id, int attempt, std::int64_t seq, const std::string& type,
             const std::string& json) override {
    return !lost && inner_.event(id, attempt, seq, type, json);
  }
  bool finish(const std::string& id, int attempt, const store::Outcome& outcome) override {
    ++finished;
    return inner_.finish(id, attempt, outcome);
  }
  bool release(const std::string& id, int attempt) override {
    ++released;
    return inner_.release(id, attempt);
  }
  std::vector<store::Lease> held() override { return inner_.held(); }

 private:
  AttemptSource& inner_;
};

class FakeInventory : public gpu::Inventory {
 public:
  std::atomic<bool> faulty = false;
  std::atomic<int> left_over = 0, xid = 0;
  std::vector<gpu::Gpu> list() override { return {{"GPU-a", "H200", "580", 0, 0}, {"GPU-b", "H200", "580", 1, 0}}; }
  std::optional<std::string> fault(const std::string& uuid) override {
    return faulty && uuid == "GPU-a" ? std::optional<std::string>("lost") : std::nullopt;
  }
  int processes(const std::string&) override { return 0; }
  std::optional<Xid> next_xid(milliseconds) override {
    std::this_thread::sleep_for(milliseconds(5));
    const int code = xid.exchange(0);
    return code ? std::optional<Xid>({"GPU-a", code}) : std::nullopt;
  }
};

}  // namespace

TEST_CASE("rule 10: an Engine that restarts while measuring costs a repetition, not the submission") {
  Lab lab;
  std::atomic<int> runs = 0;
  lab.options.measure_deadline = milliseconds(20'000);
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    return ++runs == 1 ? until_killed(job, killed) : measures(job, killed);
  });
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] { return runs == 1; });
  lab.fake.restart(milliseconds(100));
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "correct");
  CHECK(done.attempt == 2);
  CHECK(lab.count_events(id, "verdict") == 1);
  lab.check_clean();
}

TEST_CASE("rule 10: an Engine that restarts with live-restore costs nothing") {
  Lab lab;
  std::atomic<bool> running = false, go = false;
  lab.options.measure_deadline = milliseconds(20'000);
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    running = true;
    while (!go && !killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return measures(job, killed);
  });
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] { return running.load(); });
  lab.fake.restart(milliseconds(100), true);
  go = true;
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "correct");
  CHECK(done.attempt == 1);
  lab.check_clean();
}

TEST_CASE("rule 10: no Engine: nothing is claimed, the cause is named, and it goes on by itself") {
  Lab lab;
  lab.fake.down();
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] {
    return !lab.grader->faults().empty() && lab.grader->faults()[0].cause.find("docker.sock") != std::string::npos;
  });
  CHECK(lab.grader->faults()[0].part == "engine");
  CHECK(lab.get(id).state == State::queued);
  CHECK(lab.get(id).attempt == 0);
  lab.fake.up();
  CHECK(lab.wait(id).verdict == "correct");
  CHECK(lab.grader->faults().empty());
}

TEST_CASE("rule 10: a full disk pauses the grader and is not counted against anybody") {
  Lab lab;
  lab.fake.script("POST /build", fake_error(500, "write /var/lib/docker: no space left on device"), 2);
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] {
    for (const Fault& fault : lab.grader->faults())
      if (fault.part == "disk") return true;
    return false;
  });
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "correct");
  CHECK(lab.fake.count("POST /build") == 4);
  lab.wait_until([&] { return lab.grader->faults().empty(); });
}

TEST_CASE("rule 10: below the disk floor no work is taken") {
  Lab lab;
  lab.options.disk_free_bytes_min = std::int64_t{1} << 60;
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] { return !lab.grader->faults().empty() && lab.grader->faults()[0].part == "disk"; });
  std::this_thread::sleep_for(milliseconds(100));
  CHECK(lab.get(id).attempt == 0);
}

TEST_CASE("rule 10: a base image that is missing is named, and its coming noticed") {
  Lab lab;
  lab.options.base_cpu = "kbench/base:other";
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] { return lab.grader->faults().size() == 1 && lab.grader->faults()[0].part == "image"; });
  CHECK(lab.grader->faults()[0].cause.find("kbench/base:other") != std::string::npos);
  CHECK(lab.get(id).attempt == 0);
  lab.fake.add_image("kbench/base:other");
  CHECK(lab.wait(id).verdict == "correct");
}

TEST_CASE("rule 10: starts that fail are tried again within the budget, and end as infra_error") {
  Lab lab;
  lab.fake.script(
      "POST /containers/",
      [&lab](const FakeRequest& request) {
        if (request.path == "/containers/create") return lab.fake.answer_as_usual(request);
        if (request.path.ends_with("/start")) return fake_error(500, "could not select device driver \"nvidia\"");
        return lab.fake.answer_as_usual(request);
      },
      1'000'000);
  lab.start();
  const store::Submission done = lab.wait(lab.submit());
  CHECK(done.state == State::failed);
  CHECK(done.verdict == "infra_error");
  CHECK(done.attempt == 3);
  CHECK(done.reason.find("could not select device driver") != std::string::npos);
  CHECK_FALSE(done.reward);
  lab.check_clean();
}

TEST_CASE("rule 10: images that do not build end as infra_error of the image") {
  Lab lab;
  lab.fake.script("POST /build", FakeReply{.body = R"({"errorDetail":{"message":"COPY failed"}})", .chunk_bytes = 3},
                  100);
  lab.start();
  const store::Submission done = lab.wait(lab.submit());
  CHECK(done.verdict == "infra_error");
  CHECK(done.reason.find("COPY failed") != std::string::npos);
  CHECK(done.reason.starts_with("image: "));
}

TEST_CASE("rule 10: a verifier or compiler that leaves nothing is infrastructure") {
  Lab lab;
  std::atomic<int> runs = 0;
  SECTION("verifier, once") {
    lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
      return ++runs == 1 ? FakeEnd{.exit_code = 1} : measures(job, killed);
    });
    const store::Submission done = lab.start().wait(lab.submit());
    CHECK(done.verdict == "correct");
    CHECK(done.attempt == 2);
  }
  SECTION("compiler, always") {
    lab.behave("compile", [&](const FakeJob&, std::stop_token) {
      return FakeEnd{.exit_code = 2, .log = "kbench-verify: no nvcc"};
    });
    const store::Submission done = lab.start().wait(lab.submit());
    CHECK(done.verdict == "infra_error");
    CHECK(done.reason.find("no nvcc") != std::string::npos);
  }
  SECTION("links instead of results") {
    lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
      const FakeEnd end = measures(job, killed);
      std::filesystem::remove(job.mounts.at("/kbench/out") + "/reward.json");
      std::filesystem::create_symlink("/etc/passwd", job.mounts.at("/kbench/out") + "/reward.json");
      return end;
    });
    CHECK(lab.start().wait(lab.submit()).verdict == "infra_error");
  }
  SECTION("no artefact") {
    lab.behave("compile", [&](const FakeJob& job, std::stop_token killed) {
      const FakeEnd end = compiles(job, killed);
      std::filesystem::remove_all(job.mounts.at("/out") + "/artefact");
      return end;
    });
    CHECK(lab.start().wait(lab.submit()).reason == "compiler: it said ok and left no artefact");
  }
  lab.check_clean();
}

TEST_CASE("what cannot be killed takes its slot out of use") {
  Lab lab;
  lab.options.measure_deadline = milliseconds(100);
  lab.behave("measure", until_killed);
  lab.slot_options.cpu_slots = {"", ""};
  lab.fake.script(
      "POST /containers/",
      [&lab](const FakeRequest& request) {
        if (request.path.ends_with("/kill"))
          return fake_error(500, "tried to kill container, but did not receive an exit event");
        return lab.fake.answer_as_usual(request);
      },
      1'000'000);
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] {
    const auto slots = lab.grader->slots();
    return slots[0].state == gpu::SlotState::quarantined && slots[1].state == gpu::SlotState::quarantined;
  });
  CHECK(lab.grader->slots()[0].reason.starts_with("unkillable: "));
  lab.wait_until([&] { return lab.grader->faults().size() == 1 && lab.grader->faults()[0].part == "slots"; });
  // It waits: an attempt that found no slot is not counted, though it may have been claimed meanwhile.
  lab.wait_until([&] { return lab.grader->active() == 0; });
  CHECK(lab.get(id).state == State::queued);
  CHECK(lab.get(id).attempt >= 2);
}

TEST_CASE("a store that fails for a while loses nothing") {
  Lab lab;
  Faulty faulty(*lab.source);
  faulty.fail_claims = 2;
  faulty.fail_states = 2;
  lab.start(&faulty);
  const std::string id = lab.submit();
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "correct");
  CHECK(done.attempt == 3);
  CHECK(faulty.released == 2);
  CHECK(faulty.finished == 1);
  lab.grader.reset();
}

TEST_CASE("an attempt that was lost is dropped: its container is killed, nothing is said of it") {
  Lab lab;
  Faulty faulty(*lab.source);
  lab.options.measure_deadline = milliseconds(20'000);
  lab.behave("measure", until_killed);
  lab.start(&faulty);
  lab.submit();
  lab.wait_until([&] { return lab.fake.running() == 1 && lab.grader->slots()[0].state == gpu::SlotState::busy; });
  faulty.lost = true;
  lab.wait_until([&] { return lab.grader->slots()[0].state == gpu::SlotState::ready; });
  CHECK(faulty.finished == 0);
  CHECK(faulty.released == 0);
  lab.grader.reset();
  CHECK(lab.fake.containers().empty());
}

TEST_CASE("a GPU that is lost, or that an XID ends, is not measured on") {
  Lab lab;
  FakeInventory inventory;
  lab.fake.add_image("kbench/base:cuda");
  lab.attach_options.mode = gpu::Mode::nvidia;
  lab.behave("reference", [](const FakeJob& job, std::stop_token) {
    write(job.mounts.at("/out") + "/reference-cuda.so", "reference");
    return FakeEnd{};
  });
  std::mutex mutex;
  std::vector<std::string> used;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    const std::lock_guard lock(mutex);
    used.push_back(Json::parse(job.config)["HostConfig"]["DeviceRequests"][0]["DeviceIDs"][0]);
    return measures(job, killed);
  });
  SECTION("lost") {
    inventory.faulty = true;
    lab.start(nullptr, &inventory);
    CHECK(lab.wait(lab.submit("cuda")).verdict == "correct");
    CHECK(used == std::vector<std::string>{"GPU-b"});
    CHECK(lab.grader->slots()[1].reason == "lost");
  }
  SECTION("XID") {
    lab.start(nullptr, &inventory);
    inventory.xid = 13;
    lab.wait_until([&] { return inventory.xid == 0; });
    inventory.xid = 79;
    lab.wait_until([&] { return lab.grader->slots()[1].state == gpu::SlotState::quarantined; });
    CHECK(lab.grader->slots()[1].reason == "XID 79");
    CHECK(lab.wait(lab.submit("cuda")).verdict == "correct");
    CHECK(used == std::vector<std::string>{"GPU-b"});
  }
  lab.grader.reset();
}

TEST_CASE("a container that may still run keeps its slot until the Engine says otherwise") {
  Lab lab;
  std::atomic<int> measuring = 0, most = 0;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    most = std::max(most.load(), ++measuring);
    const FakeEnd end = job.labels.at("kbench.attempt") == "1" ? until_killed(job, killed) : measures(job, killed);
    --measuring;
    return end;
  });
  lab.options.measure_deadline = milliseconds(60'000);  // not what ends it
  lab.start();
  const std::string first = lab.submit();
  lab.wait_until([&] { return measuring == 1; });
  const std::string second = lab.submit();
  lab.wait_for(second, State::ready);
  FakeReply nothing;
  nothing.drop = true;
  lab.fake.script("POST /containers/" + lab.fake.containers().front().id + "/kill", nothing, 1);
  lab.fake.script("DELETE /containers/" + lab.fake.containers().front().id, nothing, 5);
  lab.db->cancel(first);
  lab.wait(second, [](const auto& s) { return s.state == State::measuring; });
  CHECK(most == 1);
  CHECK(lab.fake.count("DELETE /containers/") >= 6);
  lab.db->cancel(second);
  lab.wait(first);
  lab.wait(second);
  lab.check_clean();
}
