#include "daemon/serve.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include "daemon/api/api.h"
#include "daemon/grader/grader.h"

namespace kbench {
namespace {

constexpr int kStopSeconds = 50;
constexpr int kDidNotStop = 3;
constexpr rlim_t kSpareDescriptors = 512;  // files, containers' sockets, the store

void make_private_folder(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ec);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw std::runtime_error("data folder " + path + " cannot be made: " + std::strerror(errno) +
                             "; set data.folder, or make it");
  }
}

void allow_descriptors(int connections) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto wanted = static_cast<rlim_t>(connections) + kSpareDescriptors;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) {
    spdlog::warn("{} open files are allowed, {} would be needed for http.connections_max; raise LimitNOFILE",
                 limit.rlim_cur, wanted);
  }
}

std::vector<api::Task> tasks_for_api(const grader::Tasks& tasks) {
  std::vector<api::Task> all;
  for (const auto& task : tasks.all()) {
    const auto& p = task.problem;
    all.push_back({task.id, p.title, p.version, p.hash, p.metric == Metric::tflops ? "TFLOP/s" : "GB/s", p.gpus,
                   p.devices, p.languages, task.instruction});
  }
  return all;
}

std::vector<api::SlotStatus> slots_for_api(const std::vector<gpu::SlotView>& views) {
  std::vector<api::SlotStatus> all;
  for (const auto& view : views) {
    const auto& slot = view.slot;
    const bool cpu = !slot.gpu;
    all.push_back({(cpu ? "cpu" : "gpu") + std::to_string(slot.index), slot.device, cpu ? "" : slot.gpu->model,
                   cpu ? "" : slot.gpu->uuid, gpu::name_of(view.state), view.reason, view.holder});
  }
  return all;
}

std::vector<api::Check> checks_for_api(const grader::Grader& grader) {
  std::vector<api::Check> all;
  for (const auto& fault : grader.faults()) all.push_back({fault.part, false, fault.cause});
  if (all.empty()) all.push_back({"grader", true, ""});
  return all;
}

int wait_for_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  int number = 0;
  while (sigwait(&set, &number) != 0) {
  }
  return number;
}

// Ends the process when stopping takes too long, or when it is told to end a second time. Nothing is lost by that:
// leases run out, and the next start finds what is left of containers.
class Watchdog {
 public:
  Watchdog()
      : thread_([](const std::stop_token& stop) {
          sigset_t set;
          sigemptyset(&set);
          sigaddset(&set, SIGTERM);
          sigaddset(&set, SIGINT);
          const timespec tick{0, 100'000'000};
          for (int ticks = 0; ticks < kStopSeconds * 10 && !stop.stop_requested(); ++ticks) {
            if (sigtimedwait(&set, nullptr, &tick) > 0) break;
          }
          if (stop.stop_requested()) return;
          spdlog::critical("did not end in time; leaving all as it is, the next start puts it in order");
          std::_Exit(kDidNotStop);
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace

void serve(const config::Config& config, const std::string& version) {
  ::umask(077);
  make_private_folder(config.data_folder);
  allow_descriptors(config.http.connections_max);
  const auto token = api::token_in(config.server.token_file);
  const grader::Tasks tasks(config.tasks_folder);
  const auto inventory = gpu::open_nvml();
  const auto store = store::open_sqlite(config.store_path, config.store);
  queue::Queue queue(*store, config.queue);
  const auto source = queue.source(config.grader.name);
  grader::Grader grader(config.grader, config.engine, config.slots, config.attach, tasks, *source, inventory.get(),
                        [](const std::string& line) { spdlog::info("grader: {}", line); });
  const auto server = http::Server::create(config.http);
  api::mount(*server, {*store, queue, tasks_for_api(tasks), [&grader] { return slots_for_api(grader.slots()); },
                       [&grader] { return checks_for_api(grader); }, token, version, config.submissions});
  const auto port = server->listen(config.server.address, static_cast<std::uint16_t>(config.server.port));
  spdlog::info("kbenchd {}: listening on {} port {}; {} tasks, {} slots, token in {}", version, config.server.address,
               port, tasks.all().size(), grader.slots().size(), config.server.token_file);

  const int signal = wait_for_signal();
  spdlog::info("{}: stopping", strsignal(signal));
  const Watchdog watchdog;
  queue.stop();   // no new work in, none out
  grader.stop();  // containers gone, leases given back
  server->stop();
  spdlog::info("stopped");
}

bool check(const config::Config& config) {
  bool good = true;
  const auto look = [&](const char* part, const std::function<std::string()>& action) {
    try {
      std::printf("ok    %s: %s\n", part, action().c_str());
    } catch (const std::exception& e) {
      good = false;
      std::printf("FAIL  %s: %s\n", part, e.what());
    }
  };
  look("configuration",
       [&] { return "listens on " + config.server.address + " port " + std::to_string(config.server.port); });
  look("tasks", [&] {
    const auto count = grader::Tasks(config.tasks_folder).all().size();
    if (count == 0) throw std::runtime_error("none in " + config.tasks_folder + "; set tasks.folder");
    return std::to_string(count) + " in " + config.tasks_folder;
  });
  look("data folder", [&] {
    if (::access(config.data_folder.c_str(), F_OK) != 0) return config.data_folder + " will be made";
    if (::access(config.data_folder.c_str(), R_OK | W_OK | X_OK) != 0)
      throw std::runtime_error(config.data_folder + ": " + std::strerror(errno));
    return config.data_folder;
  });
  look("token", [&] {
    if (::access(config.server.token_file.c_str(), F_OK) != 0) return config.server.token_file + " will be made";
    api::token_in(config.server.token_file);
    return config.server.token_file;
  });
  look("engine", [&] {
    engine::Engine engine(config.engine);
    const auto info = engine.info();
    return info.engine_version + " at " + config.engine.socket;
  });
  look("GPUs", [&] {
    const auto inventory = gpu::open_nvml();
    return inventory ? std::to_string(inventory->list().size()) : std::string("none (no NVML); the device cpu only");
  });
  return good;
}

}  // namespace kbench
