// The processes that run a submission: started under their own uid, stopped, ended and wiped away. All of them are
// hostile.
//
// The verifier runs as uid 0 with at least SETUID, SETGID and KILL. Each worker run has a uid of its own; "all
// processes of the uid" are all that a submission can ever have started, whatever session or parent they chose. One
// thread, the verifier's main thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verifier/device/device.h"
#include "verifier/protocol/protocol.h"

namespace kbench::process {

struct ProcessFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // infrastructure: ours, not the worker's
// What a uid left behind is more than can be ended or removed, and that is proved to be its own doing: it went on
// making processes, or the cleaning had all the processor time that it needs a thousand times over and was never held
// up.
struct Leftovers : ProcessFault {
  using ProcessFault::ProcessFault;
};

struct Limits {
  std::uint64_t open_files = 4096;        // RLIMIT_NOFILE
  std::uint64_t file_bytes = 4ULL << 30;  // RLIMIT_FSIZE
  std::uint64_t processes = 4096;         // RLIMIT_NPROC: counts the uid over the whole host. Less where the container
                                          // may have less: some are kept for the verifier
  std::size_t output_bytes = 64 * 1024;   // of stdout and stderr kept, escaped; the rest is counted and dropped
  std::chrono::microseconds spin{50};     // wait_done: busy that long, then asleep. Long on cuda, short where the
                                          // verifier would take a processor from the worker
  std::chrono::milliseconds stop_deadline{2000};  // all processes stopped after a stop
  std::chrono::milliseconds leave_grace{500};     // between the stop word and SIGKILL
};

struct Command {
  std::vector<std::string> arguments;  // [0]: the program, an absolute path or a name looked up in PATH
  uid_t uid = 0;                       // also the gid; must not be 0
  std::string home;                    // from make_folder; working directory, HOME, TMPDIR
  std::vector<std::pair<std::string, std::string>> environment;  // besides worker_environment(home)
  bool can_stop = true;                                          // arms the cleaner that stop() needs (cpu device)
  Limits limits;
};

// The whole environment of a worker, nothing inherited but what is named here: PATH, LD_LIBRARY_PATH,
// CUDA_VISIBLE_DEVICES and the multicast switches (NCCL_NVLS_ENABLE, TORCH_SYMM_MEM_DISABLE_MULTICAST,
// NVSHMEM_DISABLE_NVLS), if set.
std::vector<std::pair<std::string, std::string>> worker_environment(const std::string& home);

struct ExitFacts {
  bool ended = false;  // false: still there
  int code = -1;       // exit code, or -1
  int signal = 0;      // that ended it, or 0
  bool killed_by_us = false;
  bool out_of_memory = false;  // the container's OOM killer struck since the worker was started
};

class WorkerProcess final : public verify::Peer {
 public:
  // Makes pages, starts the process, sends the set-up. `buffers`: SharedBuffer::fd() in the order of setup.tensors, not
  // owned. Throws ProcessFault.
  static std::unique_ptr<WorkerProcess> start(const Command& command, const protocol::Setup& setup,
                                              const std::vector<int>& buffers);
  ~WorkerProcess() override;  // kill()s

  // Waits for status ready. done: ready; refused: the worker says why (text()).
  verify::Ended wait_ready(std::chrono::nanoseconds deadline);
  // What the next go is for. Call between calls only.
  void select(protocol::Call call, std::uint32_t shape);
  // The epoch the next go must carry: one more than the last call done.
  std::uint32_t next_epoch() const;

  // verify::Peer. The first answer that breaks the protocol (wrong epoch, unknown status, done before go) is recorded
  // as the violation, the worker is killed, and wait_done returns died. stop(): a second stop() in a row checks that
  // nothing ran since the first; if something did, that is a violation.
  std::uint32_t* go_word() override;
  void go(std::uint32_t epoch) override;
  void wake() override;
  verify::Ended wait_done(std::uint32_t epoch, std::chrono::nanoseconds deadline) override;
  double worker_us() override;
  void stop() override;
  void resume() override;

  // What the worker last said, range-checked and escaped. Hints.
  protocol::Status status() const;
  int code() const;
  std::string text() const;
  // How the worker broke the protocol, else empty: "done for epoch 7 while 3 was asked". For integrity_violation.
  std::string violation() const;
  // True once the container's OOM killer has struck since the worker was started, whomever: the worker is ended then.
  // stop() looks when it checks, and when the worker ends it is looked; where nobody is stopped, ask after each call.
  bool ran_out_of_memory();

  void leave();  // asks it to end; after leave_grace as kill()
  void kill();   // SIGKILL to the process and reap it; its children are kill_and_wipe's
  ExitFacts exit_facts();
  std::string output()
      const;  // stdout and stderr, escaped, at most limits.output_bytes and a line saying what was dropped
  pid_t pid() const;

 private:
  struct State;
  explicit WorkerProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Makes `parent`/kbench-<random>, 0700, owned by the uid (the verifier's root may lack CHOWN and DAC_OVERRIDE, so a
// child under the uid makes it). `parent` must be writable for all. Throws ProcessFault.
std::string make_folder(uid_t uid, const std::string& parent = "/tmp");
// A file in such a folder, readable for its owner. Throws ProcessFault.
void write_file(uid_t uid, const std::string& path, std::string_view content);

// Runs `body` in a child process under the uid (no other group, no new privileges) and returns its exit status; 128 +
// signal when a signal ended it. After the deadline it is killed: 128 + SIGKILL. The child shares nothing but inherits
// everything: `body` must not show secrets to other processes of the uid. Throws ProcessFault when there is no room for
// a process until the deadline.
int run_as(uid_t uid, const std::function<int()>& body, std::chrono::nanoseconds deadline);

// Kills all processes of the uid, then removes all it owns under the public folders and its System V objects.
// Throws when something of it is left: then the container is no longer fit for another run. Leftovers: that is the
// uid's own doing; ProcessFault: it need not be.
struct WipeOptions {
  std::vector<std::string> folders{"/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue"};
  std::chrono::seconds processor_time{60};  // of the removing; at least 1. More: too much was left
  std::chrono::seconds deadline{300};       // the same by the clock. More: something holds us up
};
void kill_and_wipe(uid_t uid, const WipeOptions& options = {});

// Printable ASCII, newline and tab as they are, all else as \xNN; at most `bytes_max` long.
std::string escaped(std::string_view raw, std::size_t bytes_max);

}  // namespace kbench::process
