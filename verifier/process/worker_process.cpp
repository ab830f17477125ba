#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "verifier/process/census.h"
#include "verifier/process/cleaner.h"
#include "verifier/process/oom.h"
#include "verifier/process/output.h"
#include "verifier/process/process.h"
#include "verifier/process/spawn.h"
#include "verifier/protocol/futex.h"
#include "verifier/protocol/packet.h"
#include "verifier/protocol/page.h"

namespace kbench::process {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using verify::Ended;

namespace {

constexpr auto kNap = 2ms;  // asleep at most that long before looking whether the worker still lives
// A thread shows as stopped a moment before it leaves the processor. That it has left is what two looks at equal counts
// say; on a host that steals processors one thread may yet be on its last steps. It leaves once and in less than this:
// the most a submission can gain by being continued.
constexpr std::int64_t kLastStepsNs = 100'000;
constexpr std::uint64_t kLastSwitches = 1;
constexpr int kLastThreads = 1;
constexpr auto kSleepersGrace = 20ms;  // after that a thread in uninterruptible sleep counts as stopped

bool moved(const Thread& before, const Thread& now) {
  return now.run_ns != before.run_ns || now.switches != before.switches;
}

bool ran(const Thread& before, const Thread& now) {
  return now.run_ns > before.run_ns + kLastStepsNs || now.switches > before.switches + kLastSwitches;
}

}  // namespace

struct WorkerProcess::State {
  explicit State(const Command& asked)
      : command(asked),
        to_page("kbench-to-worker", Page::Writer::verifier),
        from_page("kbench-from-worker", Page::Writer::worker),
        output(asked.limits.output_bytes),
        to(new(to_page.data()) protocol::ToWorker{protocol::kMagic, protocol::kVersion, 0, protocol::Call::prepare, 0}),
        from(static_cast<protocol::FromWorker*>(from_page.data())) {}

  Command command;
  Page to_page, from_page;
  Output output;
  protocol::ToWorker* to;
  protocol::FromWorker* from;
  std::unique_ptr<Cleaner> cleaner;
  pid_t pid = -1;
  std::uint64_t oom_kills_before = 0;

  std::uint32_t accepted = 0;  // the epoch last accepted as done
  protocol::Answer answer;
  std::string violation;
  ExitFacts facts;
  bool stopped = false;
  std::map<pid_t, Thread> at_stop;

  std::uint32_t epoch_seen() const { return from->done.load(std::memory_order_acquire); }
  bool over() const { return !violation.empty() || facts.out_of_memory; }
  void end();
  void violated(const std::string& how);
  bool ran_out_of_memory();
  bool reap(int options);
  Ended await(std::uint32_t epoch, std::chrono::nanoseconds deadline);
  Ended accept(std::uint32_t epoch);
  void confirm_stopped();
  bool settle(Clock::time_point start, bool still);
  void check_still_stopped();
};

void WorkerProcess::State::end() {
  if (facts.ended) return;
  facts.killed_by_us = true;
  ::kill(pid, SIGKILL);
}

void WorkerProcess::State::violated(const std::string& how) {
  if (violation.empty()) violation = how;
  end();
}

// Whichever of its processes the OOM killer chose, the worker is over: were it let go on, a sacrificed child would
// excuse whoever ends while stopped.
bool WorkerProcess::State::ran_out_of_memory() {
  if (!facts.out_of_memory && oom_kills() > oom_kills_before) {
    facts.out_of_memory = true;
    end();
  }
  return facts.out_of_memory;
}

// True once the process is gone. A waitid for our own child: no pid can be mistaken.
bool WorkerProcess::State::reap(int options) {
  if (facts.ended || pid < 0) return true;
  int status = 0;
  pid_t got;
  do got = waitpid(pid, &status, options);
  while (got < 0 && errno == EINTR);
  if (got != pid) return false;
  facts.ended = true;
  if (WIFEXITED(status)) facts.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) facts.signal = WTERMSIG(status);
  ran_out_of_memory();
  return true;
}

Ended WorkerProcess::State::accept(std::uint32_t epoch) {
  answer = protocol::copied(from_page.data());
  const protocol::Taken taken = protocol::take(answer, epoch);
  if (taken == protocol::Taken::violation) {
    violated("status " + std::to_string(answer.status) + " for epoch " + std::to_string(answer.done) + " while " +
             std::to_string(epoch) + " was asked");
    return Ended::died;
  }
  accepted = epoch;
  return taken == protocol::Taken::done ? Ended::done : Ended::refused;
}

// Waits until the page says `epoch` (0: until it says ready or failed).
Ended WorkerProcess::State::await(std::uint32_t epoch, std::chrono::nanoseconds deadline) {
  const auto start = Clock::now();
  const auto spin_end = start + command.limits.spin;
  const auto answered = [&] {
    return epoch == 0 ? __atomic_load_n(&from->status, __ATOMIC_ACQUIRE) != 0 : epoch_seen() == epoch;
  };
  for (;;) {
    if (over()) return Ended::died;
    const std::uint32_t seen = epoch_seen();
    if (answered()) return accept(epoch);
    if (seen != accepted) {
      violated("done for epoch " + std::to_string(seen) + " while " + std::to_string(epoch) + " was asked");
      return Ended::died;
    }
    const auto now = Clock::now();
    if (now < spin_end) {
      protocol::cpu_pause();
      continue;
    }
    // Looked at once more after the process is gone: it may have answered and ended.
    if (reap(WNOHANG)) return answered() ? accept(epoch) : Ended::died;
    if (now - start >= deadline) return Ended::timed_out;
    protocol::futex_wait(&from->done, seen, std::chrono::nanoseconds(kNap).count());
  }
}

// Once all have the signal, none of them can fork. Those not yet halted are looked at again; and when one of them was
// still moving, or /proc left one out, all are.
void WorkerProcess::State::confirm_stopped() {
  const auto start = Clock::now();
  for (bool same = false; !same;) {
    bool whole;
    do at_stop = threads_of(command.uid, &whole);
    while (violation.empty() && !settle(start, whole));
    if (!violation.empty()) return;
    const std::map<pid_t, Thread> again = threads_of(command.uid, &whole);
    same = std::equal(at_stop.begin(), at_stop.end(), again.begin(), again.end(), [](const auto& one, const auto& two) {
      return one.first == two.first && one.second.state == two.second.state && !moved(one.second, two.second);
    });
    at_stop = again;
    if (!same && Clock::now() - start > command.limits.stop_deadline)
      return violated("processes would not stop: some go on");
  }
}

// False when a thread was moving at first.
bool WorkerProcess::State::settle(Clock::time_point start, bool still) {
  for (auto each = at_stop.begin(); each != at_stop.end();) {
    Thread& thread = each->second;
    still = still && !thread.leaving();
    if (thread.halted()) {
      ++each;
      continue;
    }
    const Thread before = thread;
    if (!read_thread(each->first, &thread)) {
      still = false;
      each = at_stop.erase(each);
      continue;
    }
    // A parent in vfork sleeps uninterruptibly until its stopped child executes. A thread that ends may sleep so too,
    // but will be gone, which must not look like having run: it is waited for.
    const auto waited = Clock::now() - start;
    if (thread.state == 'D' && !thread.exiting && waited > kSleepersGrace && before.switches == thread.switches) {
      ++each;
      continue;
    }
    still = false;
    if (waited > command.limits.stop_deadline) {
      violated("processes would not stop: thread " + std::to_string(each->first) + " is in state " + thread.state);
      return true;
    }
  }
  if (!still && Clock::now() - start > command.limits.stop_deadline)
    violated("processes would not stop: their number varies");
  return still;
}

// A process can have a timer send it SIGCONT: stopped once is not stopped for good.
void WorkerProcess::State::check_still_stopped() {
  const std::map<pid_t, Thread> now = threads_of(command.uid);
  int on_last_steps = 0;
  if (ran_out_of_memory()) return;  // asked after the look at /proc: whom it ended there was counted before
  for (const auto& [tid, thread] : now) {
    const auto before = at_stop.find(tid);
    const std::string who = "thread " + std::to_string(tid) + ", ";
    if (before == at_stop.end()) return violated("ran while stopped: " + who + "new, in state " + thread.state);
    const std::string what = who + "from state " + before->second.state + " to " + thread.state;
    if (thread.dead() && !before->second.dead()) return violated("ended while stopped: " + what);
    if (moved(before->second, thread)) ++on_last_steps;
    if (ran(before->second, thread) || on_last_steps > kLastThreads || (!thread.halted() && thread.state != 'D'))
      return violated("ran while stopped: " + what + ", " +
                      std::to_string((thread.run_ns - before->second.run_ns) / 1000) + " us in " +
                      std::to_string(thread.switches - before->second.switches) + " turns");
  }
  // Who is gone has run, unless it was dead already.
  for (const auto& [tid, thread] : at_stop)
    if (!thread.dead() && !now.contains(tid))
      return violated("ended while stopped: thread " + std::to_string(tid) + ", from state " + thread.state);
}

std::unique_ptr<WorkerProcess> WorkerProcess::start(const Command& command, const protocol::Setup& setup,
                                                    const std::vector<int>& buffers) {
  auto state = std::make_unique<State>(command);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    throw ProcessFault(std::string("socketpair: ") + strerror(errno));
  std::vector<int> fds{state->to_page.fd(), state->from_page.fd()};
  fds.insert(fds.end(), buffers.begin(), buffers.end());
  // The packet waits in the socket; the verifier's end can be closed before the worker has read it, and nothing is ever
  // read from it.
  const int error = protocol::send_setup(pair[0], setup, fds.data(), static_cast<int>(fds.size()));
  close(pair[0]);
  try {
    if (error != 0) throw ProcessFault(std::string("set-up message: ") + strerror(error));
    state->oom_kills_before = oom_kills();
    if (command.can_stop) state->cleaner = std::make_unique<Cleaner>(command.uid);
    state->pid = spawn(command, pair[1], state->output.write_end());
  } catch (...) {
    close(pair[1]);
    throw;
  }
  close(pair[1]);
  state->output.close_write_end();
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(std::move(state)));
}

WorkerProcess::WorkerProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerProcess::~WorkerProcess() { kill(); }

Ended WorkerProcess::wait_ready(std::chrono::nanoseconds deadline) { return state_->await(0, deadline); }

void WorkerProcess::select(protocol::Call call, std::uint32_t shape) {
  state_->to->call = call;
  state_->to->shape = shape;
}

std::uint32_t WorkerProcess::next_epoch() const { return state_->accepted + 1; }

std::uint32_t* WorkerProcess::go_word() { return reinterpret_cast<std::uint32_t*>(&state_->to->go); }

void WorkerProcess::go(std::uint32_t epoch) {
  if (state_->epoch_seen() != state_->accepted)
    state_->violated("done for epoch " + std::to_string(epoch) + " before it began");
  state_->to->go.store(epoch, std::memory_order_release);
  wake();
}

void WorkerProcess::wake() { protocol::futex_wake(&state_->to->go); }

Ended WorkerProcess::wait_done(std::uint32_t epoch, std::chrono::nanoseconds deadline) {
  return state_->await(epoch, deadline);
}

double WorkerProcess::worker_us() { return static_cast<double>(state_->answer.call_us); }

void WorkerProcess::stop() {
  State& s = *state_;
  if (!s.cleaner) throw ProcessFault("this worker was started without a cleaner");
  if (s.over()) return;
  if (s.stopped) return s.check_still_stopped();
  if (!s.cleaner->signal_all(SIGSTOP, s.command.limits.stop_deadline)) return s.violated("killed or held the cleaner");
  s.at_stop.clear();
  s.confirm_stopped();
  s.stopped = true;
}

void WorkerProcess::resume() {
  State& s = *state_;
  if (s.over() || !s.stopped) return;
  s.stopped = false;
  if (!s.cleaner->signal_all(SIGCONT, s.command.limits.stop_deadline)) s.violated("killed or held the cleaner");
}

protocol::Status WorkerProcess::status() const { return static_cast<protocol::Status>(state_->answer.status); }
int WorkerProcess::code() const { return state_->answer.code; }
std::string WorkerProcess::text() const {
  return escaped(protocol::text_of(state_->answer), 4 * sizeof state_->answer.text);
}
std::string WorkerProcess::violation() const { return state_->violation; }
bool WorkerProcess::ran_out_of_memory() { return state_->ran_out_of_memory(); }

void WorkerProcess::leave() {
  state_->to->go.store(protocol::kStop, std::memory_order_release);
  wake();
  if (state_->stopped) resume();
  const auto end = Clock::now() + state_->command.limits.leave_grace;
  while (!state_->reap(WNOHANG) && Clock::now() < end) std::this_thread::sleep_for(1ms);
  kill();
}

void WorkerProcess::kill() {
  if (state_->reap(WNOHANG)) return;
  state_->facts.killed_by_us = true;
  ::kill(state_->pid, SIGKILL);
  state_->reap(0);
}

ExitFacts WorkerProcess::exit_facts() {
  state_->reap(WNOHANG);
  return state_->facts;
}

std::string WorkerProcess::output() const { return state_->output.text(); }
pid_t WorkerProcess::pid() const { return state_->pid; }

}  // namespace kbench::process
