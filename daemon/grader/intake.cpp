#include "daemon/grader/intake.h"

#include <sys/statvfs.h>

#include <algorithm>

namespace kbench::grader {

using Clock = std::chrono::steady_clock;

namespace {

// -1 when nobody can tell.
std::int64_t free_bytes(const std::string& path) {
  struct statvfs facts{};
  if (::statvfs(path.c_str(), &facts) != 0) return -1;
  return static_cast<std::int64_t>(facts.f_bavail * facts.f_frsize);
}

}  // namespace

void Intake::set_fault(const std::string& part, const std::string& cause) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    if (cause.empty()) {
      news = faults_.erase(part) > 0;
    } else {
      news = !faults_.contains(part);
      faults_[part] = cause;
    }
  }
  if (!news) return;
  log_(part + ": " + (cause.empty() ? "in order" : cause));
  changed_.notify_all();
}

std::vector<Fault> Intake::faults() const {
  const std::lock_guard lock(mutex_);
  std::vector<Fault> all;
  for (const auto& [part, cause] : faults_) {
    const std::string name = part.substr(0, part.find('.'));
    if (all.empty() || all.back().part != name) all.push_back({name, cause});
  }
  return all;
}

bool Intake::has_fault(const std::string& part) const {
  const std::lock_guard lock(mutex_);
  return faults_.contains(part);
}

void Intake::disk_is_full(const std::string& cause) {
  disk_trusted_again_ = Clock::now() + options_.full_disk_pause;
  set_fault("disk", cause);
}

void Intake::look_at_engine(engine::Engine& engine) {
  const engine::Info info = engine.info();
  std::string unlimited;
  for (const std::string& what : info.unlimited) unlimited += (unlimited.empty() ? "" : ", ") + what;
  // It would warn of it at each creation, and the container be refused.
  set_fault("engine.limits", unlimited.empty() ? ""
                                               : "its kernel does not limit " + unlimited +
                                                     ": boot it with cgroup_enable=memory swapaccount=1, and give the "
                                                     "Engine the controllers memory and pids");
  look_at_disk(info.data_root);
}

void Intake::look_at_disk(const std::string& data_root) {
  if (Clock::now() < disk_trusted_again_.load()) return;
  std::string cause;
  for (const std::string& path : {data_root, options_.work_folder}) {
    const std::int64_t bytes = free_bytes(path);
    if (bytes >= 0 && bytes < options_.disk_free_bytes_min)
      cause = std::to_string(bytes >> 20) + " MiB are free at " + path + ", " +
              std::to_string(options_.disk_free_bytes_min >> 20) + " are needed";
  }
  set_fault("disk", cause);
}

void Intake::look_at_slots(engine::Engine& engine, const gpu::Slots& slots) {
  std::string missing;
  std::vector<std::string> devices;
  bool any = false;
  for (const std::string device : {"cpu", "cuda"}) {
    if (slots.usable(device) == 0) continue;
    any = true;
    const std::string& base = device == "cuda" ? options_.base_cuda : options_.base_cpu;
    if (engine.image(base)) {
      devices.push_back(device);
    } else {
      missing += (missing.empty() ? "" : ", ") + base + " is missing; scripts/build-base " + device + " makes it";
    }
  }
  set_fault("slots", any ? "" : "no slot is left: none is configured, or all are quarantined");
  set_fault("image", missing);
  {
    const std::lock_guard lock(mutex_);
    devices_ = std::move(devices);
  }
  changed_.notify_all();
}

std::vector<std::string> Intake::devices(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] {
    for (const char* part : {"engine", "engine.answers", "engine.limits", "disk"})
      if (faults_.contains(part)) return false;
    return !devices_.empty();
  });
  return stop.stop_requested() ? std::vector<std::string>{} : devices_;
}

}  // namespace kbench::grader
