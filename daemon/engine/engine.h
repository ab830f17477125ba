// The Docker Engine over its unix socket: images, builds, containers. Typed, blocking, safe from any thread.
//
// It makes one sort of container only: hardened, labelled, named, inspected after creation (see ContainerSpec). Every
// call has a named deadline in Options. The API version is negotiated at the first call and again after every lost
// connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/engine/tar.h"

namespace kbench::engine {

// Never a submission's fault. `unreachable`: no connection, or it broke before the answer was whole; what was asked may
// have happened. `timeout`: our deadline passed, likewise. `cancelled`: our own stop token.
struct EngineError : std::runtime_error {
  enum class Kind : std::uint8_t {
    unreachable,
    not_found,
    conflict,
    bad_request,
    no_space,
    failed,
    timeout,
    cancelled
  };
  EngineError(Kind error_kind, int http_status, const std::string& message)
      : std::runtime_error(message), kind(error_kind), status(http_status) {}
  Kind kind;
  int status;  // of HTTP; 0 when there was no answer
};
const char* name_of(EngineError::Kind kind);

using std::chrono::milliseconds;

struct Options {
  std::string socket = "/var/run/docker.sock";
  // Deadlines of single calls. kill and remove must exceed the Engine's own 15 s of trying.
  milliseconds connect_timeout{2'000}, ping_timeout{2'000}, inspect_timeout{10'000}, create_timeout{30'000};
  milliseconds start_timeout{120'000};  // hooks that attach a GPU are slow
  milliseconds kill_timeout{60'000}, remove_timeout{60'000}, logs_timeout{30'000}, image_timeout{60'000};
  milliseconds build_timeout{1'800'000};
  milliseconds backoff_min{100}, backoff_max{5'000};  // between tries while the Engine is away
  int changes_max = 6;                             // mutating calls at a time; the Engine serialises many starts anyway
  std::size_t reply_bytes_max = 16u << 20;         // of an answer that is kept whole
  std::size_t build_message_bytes_max = 1u << 20;  // of one JSON object in a build's stream
  std::size_t build_log_bytes_max = 256u << 10;    // the end of the log is kept
  std::size_t log_bytes_max = 256u << 10;          // of a container; the end is kept
  TarLimits context;
};

struct Version {
  int major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};
inline constexpr Version kApiFloor{1, 41};  // Docker 20.10
inline constexpr Version kApiCap{1, 51};    // newest whose answers were read against this client

struct Info {
  Version api;
  std::string engine_version, data_root, cgroup_version, default_runtime;
  std::vector<std::string> runtimes, cdi_spec_dirs, cdi_devices;  // cdi_*: empty before API 1.44 and 1.50
  std::vector<std::string> warnings;
  std::vector<std::string> unlimited;  // of memory, swap, pids: what its kernel lets it not limit
  bool podman = false;                 // answers as Docker does, but ignores device requests: best effort, no GPUs
};

struct Image {
  std::string id;
  std::vector<std::string> tags;
  std::map<std::string, std::string> labels;
  std::int64_t created_s = 0, bytes = 0;
};

struct BuildSpec {
  std::vector<TarEntry> context;  // a Dockerfile at its root
  std::vector<std::string> tags;
  std::map<std::string, std::string> labels;  // of letters, digits, '.', '-', '_'; also on each step's image
  std::map<std::string, std::string> args;
  std::string network = "none";  // of RUN; "default" reaches out through the Engine's bridge
};

struct Mount {
  std::string source, target;  // source must exist: a missing one is refused, never created
  bool read_only = true;
};
struct Ulimit {
  std::string name;
  std::int64_t value;
};  // soft and hard
struct DeviceNode {
  std::string path;
};  // same path inside, rw, no mknod
struct DeviceRequest {
  std::string driver;
  std::vector<std::string> ids, capabilities;
};  // ids, never counts or indices

// Always, without a field for it: no network, all capabilities dropped but caps_add, no-new-privileges, read-only root,
// init, private IPC and cgroup namespace, swap = memory, core dumps off, no restart, no auto-remove, OOM score 0, image
// entry point overridden.
struct ContainerSpec {
  std::string name;   // deterministic: a second creation of the same thing meets the first
  std::string image;  // an id: a tag can be moved meanwhile
  std::vector<std::string> command;
  std::string user, working_dir = "/";  // "uid:gid"
  std::map<std::string, std::string> env, labels;
  std::vector<std::string> caps_add;  // "SETUID"
  std::string seccomp;                // the profile's JSON text; empty: the Engine's default profile
  std::int64_t memory_bytes = 0, shm_bytes = 0, pids_max = 0;  // must be positive
  std::string cpuset;                                          // "2-3"; empty: all
  std::vector<Ulimit> ulimits;                                 // besides core; nofile is a must
  std::map<std::string, std::string> tmpfs;                    // path -> options; size is a must
  std::vector<Mount> mounts;
  std::vector<DeviceNode> devices;
  std::vector<DeviceRequest> device_requests;
  std::string runtime;                    // empty: the Engine's default
  std::int64_t log_file_bytes = 4 << 20;  // two files of it are kept
};

struct Container {
  std::string id, name, image;
  std::map<std::string, std::string> labels;
  std::string status;  // created, running, paused, restarting, removing, exited, dead
  int exit_code = 0;
  bool oom_killed = false;
  std::string error;  // of a failed start
  bool running() const { return status == "running" || status == "paused" || status == "restarting"; }
};

struct Event {
  std::string action, id;
  std::map<std::string, std::string> attributes;
};

// A started container, watched by a thread of its own. What it reports is always inspected; a broken wait only makes it
// look sooner.
class Run {
 public:
  Run(Run&&) noexcept;
  ~Run();  // stops watching; the container goes on
  // The container once it has ended, nullopt when it still runs after `patience` or `stop` was requested. Throws
  // not_found when it has been removed. An Engine that is away is waited for.
  std::optional<Container> wait(milliseconds patience, const std::stop_token& stop = {});
  // The connection broke meanwhile: a signal-like exit code may be the Engine's own end, not the container's.
  bool disturbed() const;

 private:
  friend class Engine;
  struct State;
  explicit Run(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Engine {
 public:
  explicit Engine(Options options);  // connects at the first call
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  const Options& options() const;

  void ping();  // throws when it is away; negotiates when due
  Info info();

  std::optional<Image> image(const std::string& reference);
  // Tagged ones, and untagged ones that no other image is made of. `label`: "key" or "key=value".
  std::vector<Image> images(const std::string& label);
  // Classic builder. The id of the image, which is there: asked for again after the build. `log` gets sanitised text as
  // it comes. A failed RUN, COPY or pull throws failed with the end of the log. Stopping closes the connection, which
  // ends the build.
  std::string build(const BuildSpec& spec, const std::function<void(std::string_view)>& log = {},
                    const std::stop_token& stop = {});
  void tag(const std::string& image, const std::string& repository, const std::string& tag);
  void remove_image(const std::string& reference);  // absent is fine; conflict when a container runs it

  // Made once: a name that is taken, or an answer that never came, ends in adopting what is there (same labels, same
  // image, not yet started), or in deleting and making it again; conflict when it belongs to somebody else. Every
  // hardening field is read back; one that did not stick, or a warning about a limit, deletes the container and throws
  // failed. The id.
  std::string create(const ContainerSpec& spec);
  std::optional<Container> inspect(const std::string& id_or_name);
  std::vector<Container> containers(const std::string& label);  // running or not; no exit codes (inspect tells)
  // Registers for the exit first, then starts. A start that fails throws, and nothing watches.
  Run start(const std::string& id);
  void kill(
      const std::string& id);  // ended or absent is fine. failed: it cannot be killed (a process stuck in a driver)
  void remove(const std::string& id);  // with force and its anonymous volumes; returns when it is gone
  // Sanitised, the end of at most log_bytes_max bytes, standard error and output as they came. Throws failed on a
  // daemon error frame.
  std::string logs(const std::string& id);

  // Blocks, passing on events of containers that carry `label`; only a hint. Returns when stopped; throws when the
  // connection ends.
  void events(const std::string& label, const std::function<void()>& connected,
              const std::function<void(const Event&)>& on_event, const std::stop_token& stop);

  struct Impl;  // internal to daemon/engine

 private:
  friend class Run;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kbench::engine
