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
  bool leader = false;         // its process's first: stays, dead, while others of the process live
  bool exiting = false;        // on its way out through the kernel: never again in its own code, and deaf to signals
  bool dead() const { return state == 'Z' || state == 'X'; }
  bool leaving() const { return state == 'X' || (state == 'Z' && !leader); }  // will be gone in a moment
  bool halted() const { return state == 'T' || state == 't' || dead(); }
};

// Threads by id of all processes of which any uid (real, effective, saved) is `uid`. The kernel lists first and is
// asked about each afterwards: who begins in between is not in it, and a thread that ends cuts the list of its process
// short. `whole`: a second look found no process and no thread more.
std::map<pid_t, Thread> threads_of(uid_t uid, bool* whole = nullptr);
// One thread again, and whether it is exiting (threads_of does not look); false when it is gone.
bool read_thread(pid_t tid, Thread* thread);
// Processes of the uid that are not zombies.
std::vector<pid_t> living_of(uid_t uid);

}  // namespace kbench::process
