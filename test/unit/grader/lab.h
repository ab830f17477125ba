// A grader over the fake Engine and the real store, with short deadlines. What containers do is for the test to say, by
// kind.
#pragma once

#include <kbench/events.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "daemon/grader/grader.h"
#include "daemon/queue/queue.h"
#include "test/support/fake_engine.h"

namespace kbench::test {

using namespace kbench::grader;
using Json = nlohmann::json;
using store::State;
inline constexpr char kScan[] = "raw-cuda/segmented-exclusive-scan";

inline void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

inline FakeEnd compiles(const FakeJob& job, std::stop_token) {
  write(job.mounts.at("/out") + "/artefact/submission.so", "elf");
  write(job.mounts.at("/out") + "/compile.json",
        R"({"ok":true,"exit_code":0,"seconds":0.1,"log":"a warning","compiler":"g++ 12"})");
  return {};
}

inline FakeEnd compiles_reference(const FakeJob& job, std::stop_token) {
  write(job.mounts.at("/out") + "/reference-cpu.so", "reference");
  return {};
}

inline std::string event(int seq, const std::string& type, Json more = Json::object()) {
  more.update({{"seq", seq}, {"ms", seq}, {"type", type}});
  return more.dump() + "\n";
}

inline void write_result(const FakeJob& job, const std::string& verdict, double reward) {
  const std::string out = job.mounts.at("/kbench/out");
  const Json details = {{"verdict", verdict},           {"reason", ""},          {"reward", reward}, {"metric", "GB/s"},
                        {"interval", {reward, reward}}, {"flags", Json::array()}};
  write(out + "/events.ndjson", event(1, "started") + event(2, "phase", {{"phase", "calibrate"}}) +
                                    event(3, "verdict", {{"verdict", verdict}}));
  write(out + "/details.json", details.dump());
  write(out + "/reward.json", Json{{"reward", reward}}.dump());
}

inline FakeEnd measures(const FakeJob& job, std::stop_token) {
  write_result(job, "correct", 7);
  return {.log = "verifier's own output\n"};
}

inline FakeEnd until_killed(const FakeJob&, std::stop_token killed) {
  while (!killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
  return {};
}

inline FakeReply builds_for_ever(std::atomic<int>& begun) {
  return {.stream = [&](FakeWire& wire, const auto& chunk) {
    for (++begun; !wire.gone(); std::this_thread::sleep_for(milliseconds(1))) chunk(R"({"stream":"Step 1/9"})");
    return true;
  }};
}

struct Lab {
  std::string folder = [] {
    char name[] = "/tmp/kbench-lab-XXXXXX";
    return std::string(::mkdtemp(name));
  }();
  std::map<std::string, FakeEngine::Behaviour> kinds = {
      {"compile", compiles}, {"reference", compiles_reference}, {"measure", measures}};
  std::mutex kinds_mutex;
  FakeEngine fake{folder + "/docker.sock"};  // after what its containers use to the last
  std::unique_ptr<store::Store> db = [this] {
    store::Options quick;
    quick.retry_delay = milliseconds(10);
    return store::open_sqlite(folder + "/kbench.db", quick);
  }();
  queue::Queue queue{*db, {.lease = milliseconds(3000), .sweep = milliseconds(30)}};
  std::unique_ptr<AttemptSource> source = queue.source("lab");
  Tasks tasks{"tasks"};
  Options options;
  engine::Options engine_options;
  gpu::SlotOptions slot_options;
  gpu::AttachOptions attach_options;
  std::mutex log_mutex;
  std::string log;
  std::unique_ptr<Grader> grader;

  Lab() {
    fake.add_image("kbench/base:cpu");
    fake.run([this](const FakeJob& job, std::stop_token killed) {
      FakeEngine::Behaviour behaviour;
      {
        const std::lock_guard lock(kinds_mutex);
        behaviour = kinds.at(job.labels.at("kbench.kind"));
      }
      return behaviour(job, killed);
    });
    options.name = options.owner = "lab";
    options.work_folder = folder + "/work";
    options.compile_deadline = options.measure_deadline = milliseconds(2000);
    options.container_slack = milliseconds(200);
    options.claim_wait = milliseconds(50);
    options.renew_every = milliseconds(20);
    options.health_every = milliseconds(30);
    options.reconcile_every = milliseconds(200);
    options.disk_free_bytes_min = 1;
    options.full_disk_pause = milliseconds(300);
    options.ranked_devices = {"cpu"};
    engine_options.socket = fake.socket();
    engine_options.ping_timeout = engine_options.inspect_timeout = engine_options.create_timeout = milliseconds(1000);
    engine_options.start_timeout = engine_options.kill_timeout = engine_options.remove_timeout = milliseconds(1000);
    engine_options.backoff_min = milliseconds(5);
    engine_options.backoff_max = milliseconds(50);
    slot_options.cpu_slots = {""};
  }
  ~Lab() {
    queue.stop();
    grader.reset();
    source.reset();
    std::filesystem::remove_all(folder);
  }

  Lab& start(AttemptSource* other = nullptr, gpu::Inventory* inventory = nullptr) {
    grader = std::make_unique<Grader>(options, engine_options, slot_options, attach_options, tasks,
                                      other ? *other : *source, inventory, [this](const std::string& line) {
                                        const std::lock_guard lock(log_mutex);
                                        log += line + "\n";
                                      });
    return *this;
  }
  void behave(const std::string& kind, FakeEngine::Behaviour behaviour) {
    const std::lock_guard lock(kinds_mutex);
    kinds[kind] = std::move(behaviour);
  }

  std::string submit(const std::string& device = "cpu", const std::string& task = kScan,
                     const std::string& submitter = "me") {
    store::NewSubmission made{};
    made.task = task;
    made.device = device;
    made.language = "cpp";
    made.submitter = submitter;
    made.gpus = device == "cuda" ? 1 : 0;
    made.files = {{"solution.cpp", "int x;"}, {"lib/a.h", "// a"}};
    made.source_hash = "h";
    return queue.submit(made).submission.id;
  }
  store::Submission get(const std::string& id) { return db->get(id).value(); }
  store::Submission wait(
      const std::string& id,
      std::function<bool(const store::Submission&)> enough = [](const auto& s) { return is_final(s.state); }) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (true) {
      const store::Submission now = get(id);
      if (enough(now)) return now;
      if (std::chrono::steady_clock::now() > deadline) {
        const std::lock_guard lock(log_mutex);
        FAIL("still " << name_of(now.state) << " after 20 s; log:\n" << log);
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  store::Submission wait_for(const std::string& id, State state) {
    return wait(id, [&](const auto& s) { return s.state == state; });
  }
  void wait_until(const std::function<bool()>& condition) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) FAIL("not within 20 s");
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  std::vector<std::string> event_types(const std::string& id, bool all = false) {
    std::vector<std::string> types;
    for (const store::Event& event : db->events(id, 0, 1000))
      if (all || event.type != "state") types.push_back(event.type);
    return types;
  }
  int count_events(const std::string& id, const std::string& type) {
    const auto types = event_types(id);
    return static_cast<int>(std::count(types.begin(), types.end(), type));
  }
  // Nothing of an attempt is left on the host.
  void check_clean() {
    wait_until([&] { return grader->active() == 0; });
    CHECK(fake.containers().empty());
    wait_until([&] {  // a container that outlived its attempt may have written on; the sweep finds it
      for (const auto& entry : std::filesystem::directory_iterator(options.work_folder))
        if (entry.is_directory()) return false;
      return true;
    });
  }
};

}  // namespace kbench::test
