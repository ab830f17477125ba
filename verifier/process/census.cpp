#include "verifier/process/census.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace kbench::process {
namespace {

struct Status {
  uid_t uids[3] = {};
  Thread thread;
  long threads = 0;
};

const char* field(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at ? at + strlen(name) : nullptr;
}

ssize_t read_text(int folder, const char* path, char* text, std::size_t room) {
  const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t got = read(fd, text, room - 1);
  close(fd);
  if (got > 0) text[got] = 0;
  return got;
}

// `folder`/`name` is a process's or a thread's folder in /proc.
bool read_status(int folder, const char* name, Status* out) {
  char text[4096], path[96];
  snprintf(path, sizeof path, "%s/status", name);
  if (read_text(folder, path, text, sizeof text) <= 0) return false;
  // The first line holds a name that the process chose, but escaped: what follows a newline is the kernel's.
  const char* state = field(text, "\nState:\t");
  const char* uids = field(text, "\nUid:\t");
  const char* threads = field(text, "\nThreads:\t");
  const char* voluntary = field(text, "\nvoluntary_ctxt_switches:\t");
  const char* forced = field(text, "\nnonvoluntary_ctxt_switches:\t");
  if (!state || !uids || !threads || !voluntary || !forced) return false;
  out->thread.state = *state;
  out->threads = strtol(threads, nullptr, 10);
  out->thread.switches = strtoull(voluntary, nullptr, 10) + strtoull(forced, nullptr, 10);
  return sscanf(uids, "%u\t%u\t%u", &out->uids[0], &out->uids[1], &out->uids[2]) == 3;
}

void read_run_time(int folder, const char* name, Thread* out) {
  char text[128], path[96];
  snprintf(path, sizeof path, "%s/schedstat", name);
  if (read_text(folder, path, text, sizeof text) > 0) out->run_ns = strtoll(text, nullptr, 10);
}

// PF_EXITING among the flags, the seventh field behind the name (proc(5)). The name may hold anything, a `)` too.
bool is_exiting(const char* folder) {
  char text[1024], path[64];
  snprintf(path, sizeof path, "%s/stat", folder);
  if (read_text(AT_FDCWD, path, text, sizeof text) <= 0) return true;  // gone meanwhile
  const char* after_name = strrchr(text, ')');
  unsigned flags = 0;
  constexpr unsigned kExiting = 0x4;
  return after_name && sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & kExiting) != 0;
}

bool is_of(const Status& status, uid_t uid) {
  return status.uids[0] == uid || status.uids[1] == uid || status.uids[2] == uid;
}

// Calls body(entry name) for each entry that is a number.
template <class Body>
void for_each_number(int folder, const char* path, const Body& body) {
  const int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  DIR* entries = fdopendir(fd);
  if (!entries) {
    close(fd);
    return;
  }
  while (const dirent* entry = readdir(entries))
    if (isdigit(static_cast<unsigned char>(entry->d_name[0]))) body(entry->d_name);
  closedir(entries);
}

template <class Body>
void for_each_process(uid_t uid, const Body& body) {
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  for_each_number(proc, ".", [&](const char* name) {
    Status status;
    if (read_status(proc, name, &status) && is_of(status, uid)) body(proc, name, status);
  });
  close(proc);
}

}  // namespace

std::map<pid_t, Thread> threads_of(uid_t uid, bool* whole) {
  std::map<pid_t, Thread> threads;
  std::map<pid_t, long> found;  // threads by process
  for_each_process(uid, [&](int proc, const char* pid, const Status&) {
    char folder[64];
    snprintf(folder, sizeof folder, "%.20s/task", pid);
    for_each_number(proc, folder, [&](const char* tid) {
      char path[88];
      Status status;
      snprintf(path, sizeof path, "%s/%.20s", folder, tid);
      if (!read_status(proc, path, &status)) return;
      read_run_time(proc, path, &status.thread);
      status.thread.leader = strcmp(pid, tid) == 0;
      threads[static_cast<pid_t>(atoi(tid))] = status.thread;
      ++found[static_cast<pid_t>(atoi(pid))];
    });
  });
  if (!whole) return threads;
  *whole = true;
  for_each_process(uid, [&](int, const char* pid, const Status& status) {
    const auto before = found.find(static_cast<pid_t>(atoi(pid)));
    *whole = *whole && before != found.end() && before->second == status.threads;
  });
  return threads;
}

// Leaves `leader` as it was.
bool read_thread(pid_t tid, Thread* thread) {
  char folder[32];
  snprintf(folder, sizeof folder, "/proc/%d", tid);
  Status status;
  if (!read_status(AT_FDCWD, folder, &status)) return false;
  read_run_time(AT_FDCWD, folder, &status.thread);
  status.thread.leader = thread->leader;
  status.thread.exiting = is_exiting(folder);
  *thread = status.thread;
  return true;
}

std::vector<pid_t> living_of(uid_t uid) {
  std::vector<pid_t> pids;
  for_each_process(uid, [&](int, const char* pid, const Status& status) {
    // A zombie leader may have threads that live.
    if (status.thread.state != 'Z' || status.threads > 1) pids.push_back(static_cast<pid_t>(atoi(pid)));
  });
  return pids;
}

}  // namespace kbench::process
