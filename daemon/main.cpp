// kbenchd: the command line, the log, the exit code. What it does is in serve.cpp.
//
// Exit codes: 0 ended as asked; 1 cannot run (the log says why), or --check found something amiss; 2 wrong usage or
// configuration; 3 did not end within kStopSeconds of SIGTERM, or was told to end twice.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "daemon/serve.h"

namespace {

constexpr int kCannotRun = 1, kBadUsage = 2;

void start_log() {
  // Standard error: whoever starts the daemon decides where that goes. Lines are read by journald as well as by people.
  auto log = spdlog::stderr_logger_mt("kbenchd");
  log->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  spdlog::set_default_logger(log);
}

// Before any thread is made, so that all inherit it: the main thread alone waits for them.
void block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kbenchd grades GPU kernels: REST server, durable queue, and grader on the local Docker Engine."};
  app.footer(
      "Exit codes: 0 ended as asked; 1 cannot run, or --check found something amiss; 2 wrong usage or configuration;\n"
      "3 did not end in time after SIGTERM. Options of the configuration: docs/configuration.md.");
  app.set_version_flag("--version", "kbenchd " KBENCH_VERSION);
  std::string config_file;
  bool check_only = false, reference = false;
  app.add_option("--config", config_file, "TOML file; every option has a default");
  app.add_flag("--check", check_only, "Look whether it could run, change nothing, end");
  auto* show = app.add_subcommand("config", "Print the configuration that applies, as TOML");
  show->add_option("--config", config_file, "TOML file");
  show->add_flag("--reference", reference, "Print all options with their meaning instead, as Markdown");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadUsage;
  }

  kbench::config::Config config;
  try {
    config = config_file.empty() ? kbench::config::parse("", "") : kbench::config::load(config_file);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return kBadUsage;
  }
  if (show->parsed()) {
    std::fputs((reference ? kbench::config::reference() : kbench::config::effective(config)).c_str(), stdout);
    return 0;
  }
  if (check_only) return kbench::check(config) ? 0 : kCannotRun;

  block_signals();
  start_log();
  try {
    kbench::serve(config, KBENCH_VERSION);
  } catch (const std::exception& e) {
    spdlog::critical("cannot run: {}", e.what());
    return kCannotRun;
  }
  return 0;
}
