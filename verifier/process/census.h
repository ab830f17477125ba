// Who runs under a uid, by /proc. Inside the folder only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

namespace kbench::process {

struct Thread {
  char state = '?';            // R S D T t Z X I as in /proc/<pid>/status
  std::int64_t run_ns = -1;    // on a processor so far; -1: this kernel does not say
  std::uint64_t switches = 0;  // context switches, voluntary and not
  bool exiting = false;        // on its way out through the kernel: never again in its own code, and deaf to signals
  bool dead() const { return state == 'Z' || state == 'X'; }
  bool halted() const { return state == 'T' || state == 't' || dead(); }
};

// Threads by id of all processes of which any uid (real, effective, saved) is `uid`.
std::map<pid_t, Thread> threads_of(uid_t uid);
// One thread again, and whether it is exiting (threads_of does not look); false when it is gone.
bool read_thread(pid_t tid, Thread* thread);
// Processes of the uid that are not zombies.
std::vector<pid_t> living_of(uid_t uid);

}  // namespace kbench::process
