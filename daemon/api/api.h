// The REST interface of kbenchd (docs/api.md): what each path does, in terms of the store and of what main.cpp hands
// in. Knows nothing of Docker, GPUs or SQL.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/http/http.h"
#include "daemon/queue/queue.h"
#include "daemon/store/store.h"

namespace kbench::api {

struct Limits {                // each in the config reference; past one: 413 (sizes) or 422 naming the field
  std::size_t files_max = 64;  // a submission
  std::size_t file_bytes_max = 1024 * 1024;
  std::size_t files_bytes_max = 4 * 1024 * 1024;
  std::size_t path_bytes_max = 200;  // of a file's name with its folders
  std::size_t labels_max = 16;
  std::size_t label_name_bytes_max = 64, label_value_bytes_max = 256;
  int priority_min = -10, priority_max = 10;
  std::size_t idempotency_key_bytes_max = 128;
  int retry_after_s = 5;  // of those 503
  int page_default = 50, page_max = 200;
};

// A task as a submitter may see it.
struct Task {
  std::string id;                            // "family/name"
  std::string title, version, hash, metric;  // metric: "TFLOP/s" | "GB/s"
  int gpus = 1;                              // on the device cuda
  std::vector<std::string> devices, languages;
  std::string instruction;  // Markdown
};

// A GPU, or the cpu set, and what it is doing.
struct SlotStatus {
  std::string id, device, model, uuid;  // "gpu0" | "cpu0"; cpu | cuda; "NVIDIA H200" | processor; empty on cpu
  std::string state;                    // free | leased | quarantined
  std::string reason;                   // of a quarantine
  std::string submission;               // being measured
};

struct Check {
  std::string part;
  bool ok;
  std::string cause;
};  // "engine", false, "cannot reach /var/run/docker.sock: …"

struct Dependencies {
  store::Store& store;  // this and the queue outlive the server
  queue::Queue& queue;
  std::vector<Task> tasks;
  std::function<std::vector<SlotStatus>()> slots;
  std::function<std::vector<Check>()> checks;  // of /readyz, besides the store; quick, or remembered from a while ago
  std::string token;                           // of the one submitter, "local"
  std::string version;
  Limits limits = {};
};

// Adds all paths and the token check to `server`. Once, before it listens.
void mount(http::Server& server, const Dependencies& dependencies);

// The token in `path`; made there on first use, readable by its owner only. Throws std::runtime_error that says the
// fix, also when it belongs to another user or others may read it.
std::string token_in(const std::string& path);

}  // namespace kbench::api
