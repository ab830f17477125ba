#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "verifier/process/census.h"
#include "verifier/process/oom.h"
#include "verifier/process/process.h"

namespace kbench::process {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kDepthMax = 64;  // deeper folders are moved up first, so that no tree exhausts descriptors
constexpr auto kKillDeadline = 10s;
enum : int { kClean = 0, kLeft = 1, kNotRun = 2 };  // exit codes of the child that wipes

// Runs under the uid. Removes what it owns, beneath one public folder.
class Sweep {
 public:
  Sweep(uid_t uid, const char* path) : uid_(uid), top_(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~Sweep() {
    if (top_ >= 0) close(top_);
  }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  // kClean: nothing of the uid's is left that could be seen. A pass takes kDepthMax levels off every tree, and there
  // are passes while there is progress: how many is for who wipes to bound, by time.
  int run() {
    if (top_ < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? kClean : kNotRun;
    do {
      left_ = moved_ = false;
      empty(top_, 0);
    } while (left_ && moved_);
    return left_ ? kLeft : kClean;
  }

 private:
  void empty(int folder, int depth) {
    const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* entries = copy < 0 ? nullptr : fdopendir(copy);
    if (!entries) {
      if (copy >= 0) close(copy);
      return;
    }
    while (const dirent* entry = readdir(entries))
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) remove(folder, entry->d_name, depth);
    closedir(entries);
  }

  void remove(int folder, const char* name, int depth) {
    struct stat found;
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0) return;
    const bool ours = found.st_uid == uid_;
    if (!S_ISDIR(found.st_mode)) {
      if (ours && unlinkat(folder, name, 0) != 0 && errno != ENOENT) left_ = true;
      return;
    }
    if (ours) fchmodat(folder, name, 0700, 0);
    if (depth >= kDepthMax) {
      if (!ours) return;
      char aside[64];
      snprintf(aside, sizeof aside, ".kbench-wipe-%d-%ld", getpid(), ++renamed_);
      left_ = true;
      if (renameat(folder, name, top_, aside) == 0) moved_ = true;
      return;
    }
    const int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner >= 0) {
      empty(inner, depth + 1);
      close(inner);
    }
    if (ours && unlinkat(folder, name, AT_REMOVEDIR) != 0 && errno != ENOENT) left_ = true;
  }

  uid_t uid_;
  int top_;
  long renamed_ = 0;
  bool left_ = false, moved_ = false;
};

// System V objects outlive their makers. /proc/sysvipc/<kind>: a header, then a line an object, its id second.
template <class Remove>
void remove_sysv(const char* table, std::size_t uid_column, uid_t uid, const Remove& remove) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::vector<long long> columns;
    for (long long value = 0; words >> value;) columns.push_back(value);
    if (columns.size() > uid_column && columns[uid_column] == static_cast<long long>(uid))
      remove(static_cast<int>(columns[1]));
  }
}

int wipe_all(uid_t uid, const WipeOptions& options) {
  rlimit limit;
  if (getrlimit(RLIMIT_CPU, &limit) != 0) return kNotRun;
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(options.processor_time.count()));
  if (setrlimit(RLIMIT_CPU, &limit) != 0) return kNotRun;
  int worst = kClean;
  for (const std::string& folder : options.folders) worst = std::max(worst, Sweep(uid, folder.c_str()).run());
  remove_sysv("/proc/sysvipc/shm", 7, uid, [](int id) { shmctl(id, IPC_RMID, nullptr); });
  remove_sysv("/proc/sysvipc/sem", 4, uid, [](int id) { semctl(id, 0, IPC_RMID); });
  remove_sysv("/proc/sysvipc/msg", 7, uid, [](int id) { msgctl(id, IPC_RMID, nullptr); });
  return worst;
}

// All processes of the uid, or throws. By pid first: that needs no process of the verifier's own where they have taken
// all that the container may have. kill(-1) under the uid is atomic, for those that fork faster than they are counted.
void kill_all(uid_t uid) {
  const auto end = Clock::now() + kKillDeadline;
  const std::vector<pid_t> first = living_of(uid);
  for (std::vector<pid_t> living = first; !living.empty(); living = living_of(uid)) {
    if (Clock::now() > end) {
      const std::string what =
          std::to_string(living.size()) + " processes of uid " + std::to_string(uid) + " survive SIGKILL";
      // Who is new was made by one that had the signal coming; who is not is held by the kernel or a driver.
      for (const pid_t pid : living)
        if (std::find(first.begin(), first.end(), pid) == first.end()) throw Leftovers(what + " by forking on");
      throw ProcessFault(what);
    }
    for (const pid_t pid : living) ::kill(pid, SIGKILL);
    try {
      run_as(uid, [] { return ::kill(-1, SIGKILL) == 0 || errno == ESRCH ? 0 : 1; }, 1s);
    } catch (const ProcessFault&) {  // no room for a process of ours: the next round makes some
    }
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

void kill_and_wipe(uid_t uid, const WipeOptions& options) {
  if (uid == 0) throw ProcessFault("refusing to wipe what root owns");
  kill_all(uid);
  const std::uint64_t oom_before = oom_kills();
  const int status = run_as(uid, [&] { return wipe_all(uid, options); }, options.deadline);
  if (status == kClean) return;
  const std::string what = "what uid " + std::to_string(uid) + " left behind ";
  if (status == kLeft) throw Leftovers(what + "cannot be removed");
  if (status == 128 + SIGXCPU)
    throw Leftovers(what + "takes more than " + std::to_string(options.processor_time.count()) + " s to remove");
  if (oom_kills() > oom_before) throw Leftovers(what + "takes all memory");
  throw ProcessFault("could not wipe " + what + ": " + std::to_string(status));
}

}  // namespace kbench::process
