// kbenchd's queue, leases, store and grader over random schedules, each replayable from its seed.
//
// Real, as shipped: store::open_sqlite with its writer and SQLite itself, queue::Queue, its sweeper and its source,
// grader::Grader with all its threads (claiming, renewing, housekeeping, reconciling, stopping), an attempt from image
// to verdict, Containers, Images, gpu::Slots, work folders on a real file system. Their threads, locks and clocks are
// simulated underneath (fibers.h), so that a seed decides everything.
// Modelled: the disk under SQLite (disk.h), the file system of the work folder as far as it fails (folder.cpp), the
// Docker Engine behind the interface of daemon/engine with its images and what containers do (host.h), the clients, the
// GPUs. Not here: HTTP, the Engine's wire (test/unit/engine), the report socket, the loss of power (what write() was
// given survives), data races (ThreadSanitizer).
//
// Things that go wrong (census.cpp has the list, and a run fails when one of them never did): the program dies at any
// of its turns; SQLite's calls to its files fail; the work folder's disk is full or fails; calls to the Engine are
// refused, slow, or answered to nobody, though done, or done later; the Engine restarts in the middle of them, and of
// any phase; its disk is full; somebody removes its images; containers die, hang, cannot be killed; GPUs are lost, have
// XIDs, are not left; the program is slow and leases run out; the clock is set forth and back by hours, while the
// program runs and between two lives of it; submissions are cancelled and handed in twice. What must hold: an accepted
// submission ends exactly once, with what its last attempt measured, and with no other verdict than its containers gave
// reason for; attempts only go up; no lease ends before its time, whatever the clock says; no two containers measure on
// one GPU or uid range; no image is removed that an attempt is about to use; nothing is left over when all is done; and
// the store's own invariants.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "test/simulation/census.h"
#include "test/simulation/fibers.h"
#include "test/simulation/schedule.h"

using namespace kbench::sim;

namespace {

// So many schedules fail unless something went wrong in every place that there is, and everything that can.
constexpr std::uint64_t kEnoughForPlaces = 500, kEnoughForAll = 2'000;
constexpr std::uint64_t kPerProcess = 50;  // what dead programs held is only freed with the process

struct Arguments {
  std::uint64_t seed = 1, schedules = 1000;
  int jobs = 1;
  bool talk = false, census = false;
};

// The sums come back by a pipe.
struct Sum {
  std::uint64_t schedules = 0, submissions = 0, attempts = 0, deaths = 0, hash = 0;
};

int play_some(const std::string& folder, std::uint64_t from, std::uint64_t count, bool talk, int out) {
  Sum sum;
  prepare(folder);
  for (std::uint64_t seed = from; seed < from + count; ++seed) {
    try {
      const Tally tally = play(seed, talk);
      ++sum.schedules;
      sum.submissions += tally.submissions;
      sum.attempts += tally.attempts;
      sum.deaths += tally.deaths;
      sum.hash = sum.hash * 31 + tally.turns_hash;
    } catch (const std::exception& failed) {
      std::fprintf(stderr, "seed %llu: %s\n  again: kbench-simulation --seed %llu --schedules 1 --talk\n",
                   static_cast<unsigned long long>(seed), failed.what(), static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  return ::write(out, &sum, sizeof sum) == sizeof sum ? 0 : 1;
}

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--talk") {
      arguments.talk = true;
      continue;
    }
    if (name == "--census") {
      arguments.census = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const auto value = std::strtoull(argv[++i], nullptr, 10);
    if (name == "--seed")
      arguments.seed = value;
    else if (name == "--schedules")
      arguments.schedules = value;
    else if (name == "--jobs")
      arguments.jobs = static_cast<int>(std::max<std::uint64_t>(value, 1));
    else
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: kbench-simulation [--seed N] [--schedules N] [--jobs N] [--talk] [--census]\n");
    return 2;
  }
  std::string folder =
      ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/kbench-simulation-XXXXXX" : "/tmp/kbench-simulation-XXXXXX";
  if (!::mkdtemp(folder.data())) return 1;
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return 1;
  begin_census();
  Sum all;
  int running = 0, failures = 0;
  const std::uint64_t end = arguments.seed + arguments.schedules;
  const auto collect = [&] {
    int status = 0;
    if (::wait(&status) < 0) std::abort();
    --running;
    Sum sum;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      if (!WIFEXITED(status)) std::fprintf(stderr, "a process of the simulation died of signal %d\n", WTERMSIG(status));
      ++failures;
    } else if (::read(pipe_ends[0], &sum, sizeof sum) == sizeof sum) {
      all.schedules += sum.schedules;
      all.submissions += sum.submissions;
      all.attempts += sum.attempts;
      all.deaths += sum.deaths;
      all.hash ^= sum.hash;
    }
  };
  for (std::uint64_t from = arguments.seed; from < end && failures == 0; from += kPerProcess) {
    if (running == arguments.jobs) collect();
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child == 0)
      ::_exit(play_some(folder + "/" + std::to_string(from), from, std::min(kPerProcess, end - from), arguments.talk,
                        pipe_ends[1]));
    ++running;
  }
  while (running > 0) collect();
  std::filesystem::remove_all(folder);
  std::printf(
      "simulation: seeds %llu to %llu: %llu schedules, %llu submissions, %llu attempts, %llu deaths, %d failed (trace "
      "%016llx)\n",
      static_cast<unsigned long long>(arguments.seed), static_cast<unsigned long long>(end - 1),
      static_cast<unsigned long long>(all.schedules), static_cast<unsigned long long>(all.submissions),
      static_cast<unsigned long long>(all.attempts), static_cast<unsigned long long>(all.deaths), failures,
      static_cast<unsigned long long>(all.hash));
  if (arguments.census) print_census();
  if (failures != 0) return 1;
  const std::string untried = all.schedules < kEnoughForPlaces ? "" : never_tried(all.schedules >= kEnoughForAll);
  if (untried.empty()) return 0;
  std::printf("simulation: nothing of this has ever gone wrong:%s\n", untried.c_str());
  return 1;
}
