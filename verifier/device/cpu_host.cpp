#include "verifier/device/cpu_host.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

namespace kbench::verify {
namespace {

constexpr char kGroups[] = "/sys/fs/cgroup";
constexpr std::uint64_t kCacheFallback = 32ULL << 20;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::istringstream words(first_line(path));
  std::uint64_t value = 0;
  if (words >> value) return value;
  return std::nullopt;
}

// Files of lines "key value …".
std::optional<std::uint64_t> value_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

std::uint64_t last_level_cache(const std::vector<int>& processors) {
  std::set<std::string> seen;
  std::uint64_t bytes = 0;
  for (const int processor : processors) {
    const std::string cpu = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache/index";
    std::string folder;
    for (int level = 0; level < 8 && number_in(cpu + std::to_string(level) + "/level"); ++level)
      folder = cpu + std::to_string(level);
    if (folder.empty() || !seen.insert(first_line(folder + "/shared_cpu_list")).second) continue;
    std::istringstream words(first_line(folder + "/size"));
    std::uint64_t size = 0;
    char unit = 0;
    words >> size >> unit;
    bytes += size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
  }
  return bytes != 0 ? bytes : kCacheFallback;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

}  // namespace

namespace {

// What the kernel lets go of when memory is needed: file pages, and what it remembers of names and files.
std::uint64_t reclaimable(const std::string& stat, const std::string& prefix) {
  std::uint64_t sum = 0;
  for (const char* key : {"inactive_file", "active_file", "slab_reclaimable"})
    sum += value_of(stat, prefix + key).value_or(0);
  return sum;
}

}  // namespace

MemoryFacts read_memory() { return read_memory("/proc", kGroups); }

MemoryFacts read_memory(const std::string& proc, const std::string& groups) {
  MemoryFacts facts;
  facts.total = value_of(proc + "/meminfo", "MemTotal:").value_or(0) * 1024;
  facts.available = value_of(proc + "/meminfo", "MemAvailable:").value_or(0) * 1024;
  const std::string v1 = groups + "/memory/memory.", v2 = groups + "/memory.";
  std::uint64_t can_go = 0;
  if (const auto limit = number_in(v2 + "max")) {
    facts.limit = *limit;
    facts.used = number_in(v2 + "current").value_or(0);
    can_go = reclaimable(v2 + "stat", "");
  } else if (const auto old = number_in(v1 + "limit_in_bytes")) {
    facts.limit = *old;  // near 2^63 where there is none
    facts.used = number_in(v1 + "usage_in_bytes").value_or(0);
    // The old interface does not part the kernel's share; with no worker alive nearly all of it can go.
    can_go = reclaimable(v1 + "stat", "total_") + number_in(v1 + "kmem.usage_in_bytes").value_or(0);
  }
  facts.used -= std::min(facts.used, can_go);
  return facts;
}

Facts cpu_facts(const std::vector<int>& processors) {
  Facts facts;
  utsname kernel{};
  uname(&kernel);
  const MemoryFacts memory = read_memory();
  facts.kind = "cpu";
  facts.name = processor_name();
  facts.driver = std::string("Linux ") + kernel.release;
  facts.units = static_cast<int>(processors.size());
  facts.memory_bytes = std::min(memory.total, memory.limit);
  facts.l2_bytes = last_level_cache(processors);
  const std::string clock =
      "/sys/devices/system/cpu/cpu" + std::to_string(processors.front()) + "/cpufreq/cpuinfo_max_freq";
  facts.clock_mhz_max = static_cast<double>(number_in(clock).value_or(0)) * 1e-3;
  return facts;
}

Jiffies read_jiffies(const std::vector<int>& processors) {
  Jiffies sum;
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;
    std::istringstream words(line.substr(3));
    int processor = -1;
    words >> processor;
    if (std::find(processors.begin(), processors.end(), processor) == processors.end()) continue;
    std::uint64_t value = 0;
    for (int column = 0; column < 8 && words >> value; ++column) {  // user nice system idle iowait irq softirq steal
      sum.all += value;
      if (column == 3 || column == 4) sum.idle += value;
    }
  }
  return sum;
}

std::optional<std::uint64_t> read_throttled() {
  if (const auto v2 = value_of(std::string(kGroups) + "/cpu.stat", "nr_throttled")) return v2;
  return value_of(std::string(kGroups) + "/cpu/cpu.stat", "nr_throttled");
}

}  // namespace kbench::verify
