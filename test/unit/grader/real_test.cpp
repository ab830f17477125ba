// The whole path in real containers: needs an Engine with kbench/base:cpu (scripts/engine up, scripts/build-base).
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "daemon/grader/grader.h"
#include "daemon/queue/queue.h"

using namespace kbench;
using namespace kbench::grader;
using store::State;

namespace {

constexpr char kHead[] = R"(
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include "task.h"
static int scan(const kbench_args* a) {
  std::uint32_t sum = 0;
  for (long long i = 0; i < a->N; ++i) {
    if (a->head[i]) sum = 0;
    a->out[i] = std::int32_t(sum);
    sum += std::uint32_t(a->x[i]);
  }
  return 0;
}
)";

std::string program(const std::string& body) {
  return std::string(kHead) + "extern \"C\" int kbench_run(const kbench_args* a, kbench_stream) {\n" + body + "\n}\n";
}

struct House {
  std::string folder = [] {
    char name[] = "/tmp/kbench-house-XXXXXX";
    return std::string(::mkdtemp(name));
  }();
  std::unique_ptr<store::Store> db = store::open_sqlite(folder + "/kbench.db");
  queue::Queue queue{*db, {}};
  std::unique_ptr<AttemptSource> source = queue.source("house");
  Tasks tasks{"tasks"};
  Options options;
  engine::Options engine_options;
  std::mutex log_mutex;
  std::string log;
  std::unique_ptr<Grader> grader;

  House() {
    if (const char* host = std::getenv("DOCKER_HOST"))
      engine_options.socket = std::string(host).substr(std::strlen("unix://"));
    options.name = options.owner = "house-" + std::to_string(::getpid());
    options.work_folder = folder + "/work";
    options.seccomp_file = "docker/seccomp.json";
    options.measure_memory_bytes = 2ll << 30;
    options.disk_free_bytes_min = 1;
    options.verifier.prepare = options.verifier.repetition = 10;
    start();
  }
  ~House() {
    queue.stop();
    grader.reset();
    source.reset();
    engine::Engine engine(engine_options);
    for (const engine::Image& image : engine.images("kbench.image-owner=" + options.name))
      for (const std::string& tag : image.tags) engine.remove_image(tag);
    std::filesystem::remove_all(folder);
  }
  void start() {
    gpu::SlotOptions slots;
    slots.cpu_slots = {""};
    grader = std::make_unique<Grader>(options, engine_options, slots, gpu::AttachOptions{}, tasks, *source, nullptr,
                                      [this](const std::string& line) {
                                        const std::lock_guard lock(log_mutex);
                                        log += line + "\n";
                                      });
  }
  std::string submit(const std::string& text) {
    store::NewSubmission made{};
    made.task = "raw-cuda/segmented-exclusive-scan";
    made.device = "cpu";
    made.language = "cpp";
    made.submitter = "me";
    made.files = {{"solution.cpp", text}};
    return queue.submit(made).submission.id;
  }
  store::Submission wait(const std::string& id, std::optional<State> state = std::nullopt) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(600);
    while (true) {
      const store::Submission now = db->get(id).value();
      if (state ? now.state == *state : is_final(now.state)) return now;
      if (std::chrono::steady_clock::now() > deadline) {
        const std::lock_guard lock(log_mutex);
        FAIL("still " << name_of(now.state) << "; log:\n" << log);
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
  }
  std::size_t containers() { return engine::Engine(engine_options).containers("kbench.owner=" + options.name).size(); }
};

}  // namespace

TEST_CASE("real: every verdict") {
  House house;
  const std::pair<const char*, std::string> cases[] = {
      {"correct", program("return scan(a);")},
      {"incorrect", program("scan(a); a->out[a->N - 1] += 1; return 0;")},
      {"compile_error", program("return scan(b);")},
      {"runtime_error", program("scan(a); return 7;")},
      {"runtime_error", program("*static_cast<volatile int*>(nullptr) = 1; return 0;")},
      {"timeout", program("for (volatile int n = 0;; n = n + 1) {}")},
      {"out_of_memory",
       program("for (;;) { void* p = std::malloc(64 << 20); if (!p) return 1; std::memset(p, 1, 64 << 20); }")}};
  for (const auto& [verdict, text] : cases) {
    const store::Submission done = house.wait(house.submit(text));
    INFO(verdict << ": " << done.reason << "\n" << house.db->log(done.id).value_or("") << house.log);
    CHECK(done.verdict == verdict);
    CHECK((done.reward.value_or(-1) > 0) == (std::string(verdict) == "correct"));
    CHECK_FALSE(done.rank_eligible);
  }
}

TEST_CASE("real: cancelled while measuring, and a grader that is replaced in the middle") {
  House house;
  const std::string hanging = house.submit(program("for (volatile int n = 0;; n = n + 1) {}"));
  house.wait(hanging, State::measuring);
  CHECK(house.db->cancel(hanging) == store::Cancelled::requested);
  CHECK(house.wait(hanging).state == State::cancelled);

  const std::string interrupted = house.submit(program("return scan(a);"));
  house.wait(interrupted, State::measuring);
  house.grader.reset();
  CHECK(house.db->get(interrupted)->state == State::queued);
  CHECK(house.containers() == 0);
  house.start();
  const store::Submission done = house.wait(interrupted);
  INFO(house.log);
  CHECK(done.verdict == "correct");
  CHECK(done.attempt == 2);
  while (house.grader->active() > 0) std::this_thread::sleep_for(milliseconds(10));
  CHECK(house.containers() == 0);
}
