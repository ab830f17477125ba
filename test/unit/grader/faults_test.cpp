// Rule 10: what is wrong with the machine is never the submission's fault.
#include <sched.h>
#include <sys/mount.h>

#include <future>

#include "daemon/grader/containers.h"
#include "daemon/grader/specs.h"
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

TEST_CASE("rule 10: an Engine that restarts costs attempts, not the submission, whatever was under way") {
  const std::string kind = GENERATE("build", "reference", "compile", "measure");
  CAPTURE(kind);
  Lab lab;
  std::atomic<int> runs = 0;
  lab.options.compile_deadline = lab.options.measure_deadline = milliseconds(20'000);
  if (kind == "build") {
    lab.fake.script("POST /build", builds_for_ever(runs));
  } else {
    lab.behave(kind, [&, usual = lab.kinds.at(kind)](const FakeJob& job, std::stop_token killed) {
      return ++runs == 1 ? until_killed(job, killed) : usual(job, killed);
    });
  }
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] { return runs == 1; });
  lab.fake.restart(milliseconds(100));
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "correct");
  if (kind == "measure") {
    CHECK(done.attempt == 2);
  } else {
    CHECK(done.attempt >
          1);  // what is asked for while the Engine is away is given back at once, and counts for nothing
  }
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

TEST_CASE("rule 10: a work folder that is full is nobody's fault, not even the submission's whose file did not fit") {
  bool root = true;
  const auto in_own_mounts = [&] {  // so are the threads that it starts
    root = ::unshare(CLONE_FS | CLONE_NEWNS) == 0 && ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!root) return;
    Lab lab;
    const std::string& folder = lab.options.work_folder;
    std::filesystem::create_directories(folder);
    REQUIRE(::mount("kbench-test", folder.c_str(), "tmpfs", 0, "size=1m,mode=0700") == 0);
    lab.start();
    CHECK(lab.wait(lab.submit()).verdict == "correct");
    lab.check_clean();
    {
      std::ofstream filler(folder + "/filler", std::ios::binary);
      while (filler << 'x' << std::flush) {
      }
    }
    std::filesystem::resize_file(folder + "/filler", std::filesystem::file_size(folder + "/filler") - 4096);
    const std::string id = lab.submit();  // of two files
    std::vector<Fault> faults;
    lab.wait_until([&] { return !(faults = lab.grader->faults()).empty(); });
    CHECK(faults[0].part == "disk");
    std::filesystem::remove(folder + "/filler");
    CHECK(lab.wait(id).verdict == "correct");
    lab.grader.reset();
    CHECK(::umount(folder.c_str()) == 0);
  };
  std::async(std::launch::async, in_own_mounts).get();
  if (!root) WARN("not run: it needs root");
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

TEST_CASE("rule 10: an Engine without the limits that we ask for gets no work, and the fix is named") {
  Lab lab;
  const std::string key = GENERATE("MemoryLimit", "SwapLimit", "PidsLimit");
  std::atomic<bool> limits = false;
  lab.fake.script(
      "GET /info",
      [&](const FakeRequest& request) {
        FakeReply reply = lab.fake.answer_as_usual(request);
        Json info = Json::parse(reply.body);
        info[key] = limits.load();
        reply.body = info.dump();
        return reply;
      },
      1'000'000);
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] {
    const auto faults = lab.grader->faults();
    return faults.size() == 1 && faults[0].cause.find("swapaccount=1") != std::string::npos;
  });
  CHECK(lab.grader->faults()[0].part == "engine");
  CHECK(lab.get(id).attempt == 0);
  limits = true;
  CHECK(lab.wait(id).verdict == "correct");
  lab.grader.reset();
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

TEST_CASE("a backlog of one device leaves another's slots to those who want them") {
  Lab lab;
  FakeInventory inventory;
  lab.fake.add_image("kbench/base:cuda");
  lab.attach_options.mode = gpu::Mode::nvidia;
  lab.options.measure_deadline = milliseconds(20'000);
  lab.behave("reference", [](const FakeJob& job, std::stop_token) {
    for (const char* device : {"cpu", "cuda"})
      write(job.mounts.at("/out") + "/reference-" + device + ".so", "reference");
    return FakeEnd{};
  });
  std::atomic<bool> go = false;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    const bool cpu = Json::parse(job.config)["HostConfig"].value("DeviceRequests", Json::array()).empty();
    while (cpu && !go && !killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return measures(job, killed);
  });
  lab.start(nullptr, &inventory);
  std::vector<std::string> backlog;
  for (int i = 0; i < 20; ++i) backlog.push_back(lab.submit("cpu"));
  lab.wait_until([&] {
    return std::count_if(backlog.begin(), backlog.end(), [&](const std::string& id) {
             return lab.get(id).state == store::State::ready;
           }) == lab.options.prepare_ahead;
  });
  CHECK(lab.wait(lab.submit("cuda")).verdict == "correct");
  go = true;
  for (const std::string& id : backlog) CHECK(lab.wait(id).verdict == "correct");
  lab.grader.reset();
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

TEST_CASE("a start that may be under way keeps its slot") {
  Lab lab;
  std::atomic<int> measuring = 0, most = 0;
  std::atomic<bool> asked = false, started = false;
  std::jthread starter;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    most = std::max(most.load(), ++measuring);
    const bool late = job.labels.at("kbench.attempt") == "1";
    if (late) started = true;
    while (!killed.stop_requested() && (late || !started)) std::this_thread::sleep_for(milliseconds(1));
    const FakeEnd end = late ? FakeEnd{} : measures(job, killed);
    --measuring;
    return end;
  });
  lab.options.measure_deadline = milliseconds(20'000);
  lab.engine_options.start_timeout = lab.engine_options.remove_timeout = milliseconds(150);
  lab.fake.script(
      "POST /containers/",
      [&](const FakeRequest& request) {
        const auto jobs = lab.fake.containers();
        const bool measure = std::any_of(jobs.begin(), jobs.end(), [&](const FakeJob& job) {
          return request.path == "/containers/" + job.id + "/start" && job.labels.at("kbench.kind") == "measure";
        });
        if (!measure || asked.exchange(true)) return lab.fake.answer_as_usual(request);
        starter = std::jthread([&lab, request] {  // a slow hook
          std::this_thread::sleep_for(milliseconds(1000));
          lab.fake.answer_as_usual(request);
        });
        return FakeReply{.delay = milliseconds(300), .drop = true};
      },
      1'000'000);
  lab.fake.script(
      "DELETE /containers/",
      [&](const FakeRequest& request) {  // the Engine does one thing at a time with a container
        if (!asked || started) return lab.fake.answer_as_usual(request);
        return FakeReply{.delay = milliseconds(300), .drop = true};
      },
      1'000'000);
  lab.start();
  const store::Submission done = lab.wait(lab.submit());
  CHECK(done.verdict == "correct");
  CHECK(done.attempt == 2);
  CHECK(most == 1);
  CHECK(lab.grader->slots()[0].reason.empty());
  lab.check_clean();
  lab.grader.reset();
}

TEST_CASE("an Engine that is away when a container must be killed says nothing of the slot") {
  Lab lab;
  lab.options.measure_deadline = milliseconds(100);
  lab.options.container_slack = milliseconds(100);
  lab.engine_options.kill_timeout = milliseconds(150);
  std::atomic<int> runs = 0;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    return ++runs == 1 ? until_killed(job, killed) : measures(job, killed);
  });
  SECTION("the kill has no answer in time") {
    lab.fake.script(
        "POST /containers/",
        [&, delayed = std::make_shared<std::atomic<bool>>(false)](const FakeRequest& request) {
          if (!request.path.ends_with("/kill") || delayed->exchange(true)) return lab.fake.answer_as_usual(request);
          return FakeReply{.delay = milliseconds(400), .drop = true};
        },
        1'000'000);
    lab.start();
    CHECK(lab.wait(lab.submit()).verdict == "correct");
    CHECK(lab.grader->slots()[0].reason.empty());
    lab.grader.reset();
  }
  SECTION("it goes after the kill") {
    std::atomic<bool> gone = false;
    std::jthread restarter;
    lab.fake.script(
        "POST /containers/",
        [&](const FakeRequest& request) {
          if (!request.path.ends_with("/kill") || gone.exchange(true)) return lab.fake.answer_as_usual(request);
          restarter = std::jthread([&] { lab.fake.restart(milliseconds(600), true); });
          return FakeReply{.status = 204};
        },
        1'000'000);
    lab.start();
    CHECK(lab.wait(lab.submit()).verdict == "correct");
    CHECK(lab.grader->slots()[0].reason.empty());
    lab.check_clean();
    lab.grader.reset();
  }
}

TEST_CASE("stopping: attempts may remove their containers, but an Engine that is away is not waited for long") {
  Lab lab;
  lab.options.measure_deadline = milliseconds(60'000);
  lab.behave("measure", until_killed);
  const auto stopped_within = [&](milliseconds most) {
    const auto begin = std::chrono::steady_clock::now();
    lab.grader.reset();
    CHECK(std::chrono::steady_clock::now() - begin < most);
  };
  SECTION("removals fail at first") {
    lab.start();
    const std::string id = lab.submit();
    lab.wait_until([&] { return lab.get(id).state == State::measuring && lab.fake.running() == 1; });
    const std::string container = lab.fake.containers().front().id;
    lab.fake.script("POST /containers/" + container + "/kill", FakeReply{.drop = true});
    lab.fake.script("DELETE /containers/" + container, FakeReply{.drop = true}, 3);
    stopped_within(lab.options.stop_grace);
    CHECK(lab.fake.containers().empty());
    CHECK(lab.get(id).state == State::queued);
  }
  SECTION("the Engine is away") {
    lab.options.stop_grace = milliseconds(300);
    lab.start();
    const std::string id = lab.submit();
    lab.wait_until([&] { return lab.get(id).state == State::measuring && lab.fake.running() == 1; });
    lab.fake.down();
    stopped_within(milliseconds(5'000));
  }
}

TEST_CASE("what goes wrong while an ended container is put away ends nothing else") {
  Lab lab;
  lab.fake.script("DELETE /containers/", fake_error(403, "no"), 1);
  engine::Engine engine(lab.engine_options);
  Containers containers(engine, [](const std::string&) { throw std::runtime_error("the log is full"); });
  engine::ContainerSpec spec =
      reference_spec(lab.options, {engine.image("kbench/base:cpu")->id, "cpu", "k", lab.folder, lab.folder, 1}, "");
  CHECK(containers.run(spec, milliseconds(5'000), {}).state.exit_code == 0);
  CHECK(lab.fake.containers().size() == 1);
}
