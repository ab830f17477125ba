// Real processes under real uids, honest and hostile.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "test/unit/process/sandbox.h"
#include "verifier/process/census.h"

using namespace kbench;
using namespace kbench::process;
using namespace kbench::test;
using namespace std::chrono_literals;
using verify::Ended;

namespace {

constexpr uid_t kUid = 210'020;

struct Run {
  explicit Run(Mode mode, std::int64_t amount = 0, const std::function<void(Command&)>& change = {})
      : folder(make_folder(kUid)), x(kElements * sizeof(float)), y(kElements * sizeof(float)) {
    for (std::int64_t i = 0; i < kElements; ++i) x.data[i] = static_cast<float>(i);
    Command command = command_of(kUid, folder);
    if (change) change(command);
    try {
      worker = WorkerProcess::start(command, setup_of(mode, amount, {x.bytes, 0}, {y.bytes, 0}), {x.fd, y.fd});
    } catch (...) {
      clear();
      throw;
    }
  }
  ~Run() {
    worker.reset();
    clear();
  }
  void clear() const {
    WipeOptions options;
    options.folders = {folder};
    kill_and_wipe(kUid, options);
    run_as(kUid, [&] { return rmdir(folder.c_str()); }, 5s);
  }
  Ended call(std::chrono::nanoseconds deadline = 10s) {
    const std::uint32_t epoch = worker->next_epoch();
    worker->go(epoch);
    return worker->wait_done(epoch, deadline);
  }
  Ended ready() { return worker->wait_ready(20s); }
  std::string folder;
  PlainBuffer x, y;
  std::unique_ptr<WorkerProcess> worker;
};

// The living root children of this process but for the worker: its cleaner. As /proc tells of them, for the log.
std::map<pid_t, std::string> children_other_than(pid_t worker) {
  std::map<pid_t, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "status");
    const std::string status{std::istreambuf_iterator<char>(file), {}};
    const pid_t pid = atoi(entry.path().filename().c_str());
    if (pid > 0 && pid != worker && status.find("\nPPid:\t" + std::to_string(getpid()) + "\n") != std::string::npos &&
        status.find("\nUid:\t0\t") != std::string::npos && status.find("\nState:\tZ") == std::string::npos)
      found.emplace(pid, status.substr(0, 400));
  }
  return found;
}

constexpr long long kLittleMemory = 256 << 20;

// What `body` returns in a child in a control group of its own with so much memory; the child is the verifier then.
int in_little_memory(const std::function<int()>& body) {
  const std::string group = "/sys/fs/cgroup/memory/kbench-test-" + std::to_string(getpid());
  std::error_code error;
  if (!std::filesystem::create_directory(group, error)) {
    WARN("no memory control group to be made here: not tested");
    return 0;
  }
  std::ofstream(group + "/memory.limit_in_bytes") << kLittleMemory;
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream(group + "/cgroup.procs") << getpid() << std::flush;
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  for (int i = 0; i < 100 && rmdir(group.c_str()) != 0; ++i) std::this_thread::sleep_for(10ms);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("an honest worker answers call after call and leaves") {
  Run run(Mode::honest);
  REQUIRE(run.ready() == Ended::done);
  for (int i = 0; i < 100; ++i) {
    run.x.data[7] = static_cast<float>(i);
    run.worker->select(i == 0 ? protocol::Call::prepare : protocol::Call::run, 0);
    REQUIRE(run.call() == Ended::done);
    REQUIRE(run.y.data[7] == static_cast<float>(2 * i));
  }
  CHECK(run.worker->worker_us() < 1e6);
  CHECK(run.worker->violation().empty());
  CHECK_FALSE(run.worker->exit_facts().ended);
  run.worker->leave();
  const ExitFacts facts = run.worker->exit_facts();
  CHECK(facts.ended);
  CHECK(facts.code == 0);
  CHECK_FALSE(facts.killed_by_us);
  CHECK_FALSE(facts.out_of_memory);
}

TEST_CASE("a submission that does not load says why") {
  Run run(Mode::honest, 0, [](Command& command) { command.arguments[1] = "/nonexistent.so"; });
  CHECK(run.ready() == Ended::refused);
  CHECK(run.worker->status() == protocol::Status::failed);
  CHECK(run.worker->text().find("/nonexistent.so") != std::string::npos);
  CHECK(run.worker->violation().empty());
}

TEST_CASE("a worker program that cannot be executed is an infrastructure fault") {
  CHECK_THROWS_AS(Run(Mode::honest, 0, [](Command& command) { command.arguments = {"/nonexistent"}; }), ProcessFault);
  CHECK_THROWS_AS(Run(Mode::honest, 0, [](Command& command) { command.arguments = {"kbench-no-such-program"}; }),
                  ProcessFault);
  CHECK_THROWS_AS(Run(Mode::honest, 0, [](Command& command) { command.home = "/root"; }), ProcessFault);
  CHECK_THROWS_AS(Run(Mode::honest, 0, [](Command& command) { command.uid = 0; }), ProcessFault);
}

TEST_CASE("a non-zero return is refused, with its number") {
  Run run(Mode::refuses);
  REQUIRE(run.ready() == Ended::done);
  CHECK(run.call() == Ended::refused);
  CHECK(run.worker->code() == 5);
  CHECK(run.worker->status() == protocol::Status::refused);
}

TEST_CASE("a worker that ends is seen to have ended") {
  const auto [mode, code, signal] = GENERATE(std::tuple{Mode::exits, 7, 0}, std::tuple{Mode::aborts, -1, SIGABRT});
  Run run(mode);
  REQUIRE(run.ready() == Ended::done);
  CHECK(run.call() == Ended::died);
  const ExitFacts facts = run.worker->exit_facts();
  CHECK(facts.ended);
  CHECK(facts.code == code);
  CHECK(facts.signal == signal);
  CHECK_FALSE(facts.killed_by_us);
  CHECK(run.worker->violation().empty());
}

TEST_CASE("a worker that eats all memory is told from one that dies of something else") {
  CHECK(in_little_memory([] {
          Run run(Mode::eats_memory);
          if (run.ready() != Ended::done) return 3;
          if (run.call() != Ended::died) return 4;
          const ExitFacts facts = run.worker->exit_facts();
          return facts.out_of_memory && facts.signal == SIGKILL && !facts.killed_by_us ? 0 : 2;
        }) == 0);
}

TEST_CASE("one child sacrificed to the OOM killer ends the worker, and so excuses nobody") {
  const bool stopped = GENERATE(true, false);
  CHECK(in_little_memory([&] {
          Run run(Mode::sacrifices);
          if (run.ready() != Ended::done) return 3;
          if (run.call() != Ended::done) return 4;
          if (stopped) run.worker->stop();
          if (stopped) run.worker->stop();
          if (!stopped && !run.worker->ran_out_of_memory()) return 5;
          if (run.worker->wait_done(1, 0s) != Ended::died) return 6;
          run.worker->resume();
          run.worker->kill();
          const ExitFacts facts = run.worker->exit_facts();
          return facts.out_of_memory && facts.killed_by_us && run.worker->violation().empty() ? 0 : 2;
        }) == 0);
}

TEST_CASE("a worker that stays within its memory is let be, however near the limit") {
  CHECK(in_little_memory([&] {
          Run run(Mode::sacrifices, kLittleMemory - kLittleMemory / 4);
          if (run.ready() != Ended::done) return 3;
          for (int i = 0; i < 3; ++i) {
            if (run.call() != Ended::done) return 4;
            run.worker->stop();
            run.worker->stop();
            run.worker->resume();
          }
          return run.worker->ran_out_of_memory() || run.worker->exit_facts().out_of_memory ? 2 : 0;
        }) == 0);
}

TEST_CASE("a worker that does not answer runs into the deadline") {
  Run run(GENERATE(Mode::hangs, Mode::stops_itself));
  REQUIRE(run.ready() == Ended::done);
  const auto start = std::chrono::steady_clock::now();
  CHECK(run.call(200ms) == Ended::timed_out);
  CHECK(std::chrono::steady_clock::now() - start < 3s);
  run.worker->kill();
  CHECK(run.worker->exit_facts().killed_by_us);
}

TEST_CASE("answers outside the protocol are violations and end the worker") {
  const auto [mode, words] =
      GENERATE(std::pair{Mode::garbage_status, "status 2779096485"}, std::pair{Mode::wrong_epoch, "epoch 12345"});
  Run run(mode);
  REQUIRE(run.ready() == Ended::done);
  CHECK(run.call() == Ended::died);
  CHECK(run.worker->violation().find(words) != std::string::npos);
  std::this_thread::sleep_for(20ms);
  CHECK(run.worker->exit_facts().ended);
}

TEST_CASE("done before go is a violation") {
  Run run(Mode::done_before_go);
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  std::this_thread::sleep_for(100ms);
  CHECK(run.call() == Ended::died);
  CHECK_FALSE(run.worker->violation().empty());
}

TEST_CASE("a page that changes all the time is survived") {
  Run run(Mode::fuzz_page);
  REQUIRE(run.ready() == Ended::done);
  for (int i = 0; i < 50 && run.worker->violation().empty(); ++i) {
    const Ended ended = run.call(1s);
    if (ended == Ended::died) break;
    for (const char c : run.worker->text()) CHECK(((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'));
    CHECK(std::isfinite(run.worker->worker_us()));
  }
}

TEST_CASE("a flood of output neither blocks nor fills memory") {
  Run run(Mode::floods, 64 << 20);
  REQUIRE(run.ready() == Ended::done);
  CHECK(run.call() == Ended::done);
  const std::string output = run.worker->output();
  CHECK(output.size() < 64 * 1024 + 100);
  CHECK(output.find("\\x1b\\x1b") == 0);
  CHECK(output.find("more bytes dropped") != std::string::npos);
}

TEST_CASE("output up to the cap is kept whole") {
  Run run(Mode::floods, 4096, [](Command& command) { command.limits.output_bytes = 4 * 4096; });
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  CHECK(run.worker->output().size() == 4 * 4096);
  CHECK(run.worker->output().find("dropped") == std::string::npos);
}

TEST_CASE("the verifier is out of a worker's reach") {
  Run run(Mode::attacks_verifier);
  REQUIRE(run.ready() == Ended::done);
  const Ended ended = run.call();
  INFO(run.worker->output());
  CHECK(ended == Ended::done);
  CHECK(run.worker->code() == 0);
}

TEST_CASE("a worker gets no descriptor and no variable that it was not meant to get") {
  setenv("KBENCH_TEST_SECRET", "1", 1);
  const int secret = open("/etc/hostname", O_RDONLY);  // not close-on-exec
  Run run(Mode::leaks);
  REQUIRE(run.ready() == Ended::done);
  const Ended ended = run.call();
  INFO(run.worker->output());
  CHECK(ended == Ended::done);
  close(secret);
}

TEST_CASE("what a worker does to the descriptors it is given hurts nobody") {
  Run run(Mode::honest, 0, [](Command& command) { command.arguments = {KBENCH_TEST_HOSTILE_WORKER}; });
  CHECK(run.ready() == Ended::done);
  INFO(run.worker->text());
  CHECK(run.worker->code() == 0);
  CHECK(run.worker->text().find("0 attempts succeeded\\x1b") == 0);
  for (std::int64_t i = 0; i < kElements; ++i) run.x.data[i] = run.y.data[i] + 1;  // no SIGBUS
  run.worker->select(protocol::Call::run, 0);
  run.worker->go(1);
  CHECK(run.worker->wait_done(1, 50ms) == Ended::timed_out);
}

TEST_CASE("a stopped worker does nothing, with all its descendants") {
  Run run(Mode::forks);
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  for (int i = 0; i < 20; ++i) {
    run.worker->stop();
    for (const auto& [tid, thread] : threads_of(kUid)) CHECK(thread.halted());
    const auto before = threads_of(kUid);
    std::this_thread::sleep_for(5ms);
    for (const auto& [tid, thread] : threads_of(kUid)) CHECK(thread.run_ns <= before.at(tid).run_ns + 1'000'000);
    run.worker->stop();
    run.worker->resume();
  }
  CHECK(living_of(kUid).size() == 6);
  CHECK(run.worker->violation().empty());
}

TEST_CASE("a process that continues itself is found out") {
  Run run(Mode::continues_itself, GENERATE(1'000, 40'000),
          [](Command& command) { command.limits.stop_deadline = 300ms; });
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  run.worker->stop();
  std::this_thread::sleep_for(100ms);
  run.worker->stop();
  const std::string how = run.worker->violation();
  CHECK((how.find("processes would not stop") == 0 || how.find("ran while stopped") == 0));
}

TEST_CASE("processes that continue themselves for a moment only are found out") {
  Run run(Mode::runs_in_slices, 150'000);
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  run.worker->stop();
  // On a busy machine their turn may be a while in coming.
  for (int i = 0; i < 25 && run.worker->violation().empty(); ++i) {
    std::this_thread::sleep_for(200ms);
    run.worker->stop();
  }
  CHECK(run.worker->violation().find("ran while stopped") == 0);
}

TEST_CASE("a process that ends while stopped is found out") {
  Run run(Mode::forks);
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  for (int i = 0; i < 200 && living_of(kUid).size() != 6; ++i) std::this_thread::sleep_for(10ms);
  run.worker->stop();
  for (const pid_t pid : living_of(kUid))
    if (pid != run.worker->pid()) {
      kill(pid, SIGKILL);  // as a timer of its own would
      break;
    }
  for (int i = 0; i < 200 && living_of(kUid).size() != 5; ++i) std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(20ms);  // reaped
  run.worker->stop();
  CHECK_FALSE(run.worker->violation().empty());
}

TEST_CASE("a cleaner that was killed or stopped is a violation") {
  Run run(Mode::honest, 0, [](Command& command) { command.limits.stop_deadline = 200ms; });
  REQUIRE(run.ready() == Ended::done);
  const auto children = children_other_than(run.worker->pid());
  for (const auto& [pid, status] : children) UNSCOPED_INFO(status);
  REQUIRE(children.size() == 1);
  const pid_t cleaner = children.begin()->first;
  REQUIRE(kill(cleaner, GENERATE(SIGKILL, SIGSTOP)) == 0);
  std::this_thread::sleep_for(20ms);
  run.worker->stop();
  CHECK(run.worker->violation() == "killed or held the cleaner");
  CHECK(run.call() == Ended::died);
}

TEST_CASE("what continues the worker continues nobody else of the session") {
  const pid_t bystander = fork();
  if (bystander == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  REQUIRE(kill(bystander, SIGSTOP) == 0);
  REQUIRE(waitpid(bystander, nullptr, WUNTRACED) == bystander);
  {
    Run run(Mode::honest);
    REQUIRE(run.ready() == Ended::done);
    run.worker->stop();
    run.worker->resume();
    CHECK(run.call() == Ended::done);
  }
  CHECK(waitpid(bystander, nullptr, WCONTINUED | WNOHANG) == 0);
  kill(bystander, SIGKILL);
  waitpid(bystander, nullptr, 0);
}

TEST_CASE("hunting the cleaner is no way out") {
  Run run(Mode::hunts_cleaner, 0, [](Command& command) { command.limits.stop_deadline = 1s; });
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  std::this_thread::sleep_for(20ms);
  for (int i = 0; i < 200 && run.worker->violation().empty(); ++i) {
    run.worker->stop();
    if (run.worker->violation().empty())
      for (const auto& [tid, thread] : threads_of(kUid)) REQUIRE(thread.halted());
    run.worker->resume();
  }
}

TEST_CASE("a pool that starts and awaits short threads and processes all the time is no violation") {
  Run run(Mode::pools);
  REQUIRE(run.ready() == Ended::done);
  REQUIRE(run.call() == Ended::done);
  for (int i = 0; i < 1000; ++i) {
    run.worker->stop();
    run.worker->stop();
    INFO(i);
    REQUIRE(run.worker->violation() == "");
    run.worker->resume();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (i % 10)));
  }
}

TEST_CASE("many stops and goes in a row lose no wake-up") {
  Run run(Mode::honest);
  REQUIRE(run.ready() == Ended::done);
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t epoch = run.worker->next_epoch();
    run.worker->stop();
    run.worker->go(epoch);
    run.worker->resume();
    REQUIRE(run.worker->wait_done(epoch, 5s) == Ended::done);
  }
}
