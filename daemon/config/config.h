// kbenchd's configuration: a TOML file, every option with a default. docs/configuration.md lists them; it is made from
// the same table that the parser reads (options.cpp), and a test fails when it drifts.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/api.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/gpu.h"
#include "daemon/grader/grader.h"
#include "daemon/http/http.h"
#include "daemon/queue/queue.h"
#include "daemon/store/store.h"

namespace kbench::config {

struct Server {
  std::string address = "127.0.0.1";
  int port = 8700;
  std::string token_file;  // never empty after parse(): DATA/token
};

struct Config {
  Config() {
    grader.work_folder.clear();
    slots.cpu_slots = {""};
  }

  std::string data_folder = "/var/lib/kbench";
  std::string tasks_folder = "tasks";
  std::string store_path;  // never empty after parse(): DATA/kbench.db
  Server server;
  http::Limits http;
  store::Options store;
  queue::Options queue;
  api::Limits submissions;
  engine::Options engine;
  gpu::AttachOptions attach;
  gpu::SlotOptions slots;  // default: one cpu slot, of all CPUs
  grader::Options grader;  // work_folder never empty after parse(): DATA/work
};

// what(): every error, one a line: "kbenchd.toml:3: server.port: 70000 is not a port (1..65535); see
// docs/configuration.md".
struct BadConfig : std::runtime_error {
  explicit BadConfig(std::vector<std::string> all);
  const std::vector<std::string> errors;
};

Config parse(std::string_view toml, const std::string& file_name);  // "" gives the defaults
Config load(const std::string& path);
std::string effective(const Config& config);  // as TOML that parse() reads back
std::string reference();                      // docs/configuration.md

}  // namespace kbench::config
