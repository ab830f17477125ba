#include "test/simulation/census.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <vector>

#include "test/simulation/fibers.h"

namespace kbench::sim {

namespace {

// "cut": the Engine restarts while it is at it. "undone", "done", "late": no answer, and it never happens, has
// happened, happens when nobody waits any more.
struct Place {
  const char *name, *faults;
  int weight = 1;  // for the focus: more where little is called
};
constexpr Place kPlaces[] = {
    // The Engine's calls.
    {"info", "down refused slow cut undone"},
    {"image", "down refused slow cut undone"},
    {"images", "down refused slow cut undone", 4},
    {"inspect", "down refused slow cut undone", 6},
    {"containers", "down refused slow cut undone", 3},
    {"logs", "down refused slow cut undone", 6},
    {"events", "down refused slow cut undone broken"},
    {"build", "down refused slow cut undone done late full no-base", 5},
    {"create", "down refused slow cut undone done late full no-image", 4},
    {"start", "down refused slow cut undone done late found", 6},
    {"wait", "refused slow cut undone done", 3},
    {"kill", "down refused slow cut undone done late stuck", 10},
    {"remove", "down refused slow cut undone done late stuck", 5},
    {"remove_image", "down refused slow cut undone done late", 7},
    // Containers and GPUs.
    {"reference", "dies hangs stuck full", 8},
    {"compile", "dies hangs stuck full", 6},
    {"measure", "dies hangs stuck full ill gpu-lost", 6},
    {"gpu", "absent lost haunted xid-hardware xid-kernel", 8},
    // Under an attempt, by its phase: the Engine restarts, kbenchd dies.
    {"image-phase", "restart death"},
    {"compile-phase", "restart death"},
    {"slot-phase", "restart death", 10},
    {"measure-phase", "restart death", 6},
    {"program", "stalls", 4},
    {"lease", "stalls", 10},  // what renews and hands in comes late, others do not
    // The work folder's file system.
    {"mkdir", "full io"},
    {"mkdirat", "full io", 8},
    {"openat", "full io", 2},
    {"write", "full io short", 2},
    {"unlinkat", "io"},
    {"statvfs", "full"},
    // The store's.
    {"store-open", "error"},
    {"store-read", "error"},
    {"store-write", "error full cut"},
    {"store-truncate", "error", 2},
    {"store-sync", "error"},
    {"store-size", "error"},
    {"store-lock", "error"},
    {"store-shm-map", "error"},
    {"store-delete", "error"},
    {"store-access", "error"},
};

using Count = std::atomic<std::uint64_t>;
std::map<std::string, std::map<std::string, Count*>> counts;
struct Focus {
  std::string where, what;
  double probability;
};
std::vector<Focus> focuses;

}  // namespace

void begin_census() {
  constexpr std::size_t kBytes = 4096;
  void* shared = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  auto* next = static_cast<Count*>(shared);
  for (const Place& place : kPlaces) {
    std::istringstream words(place.faults);
    for (std::string fault; words >> fault;) counts[place.name][fault] = next++;
  }
  if (next > static_cast<Count*>(shared) + kBytes / sizeof(Count)) std::abort();
}

void count(const std::string& where, const std::string& what) { ++*counts.at(where).at(what); }

double odds(const std::string& where, const std::string& what, double probability) {
  for (const Focus& focus : focuses)
    if (where == focus.where && what == focus.what) probability = std::max(probability, focus.probability);
  return probability;
}

void focus_on(std::uint64_t number, double probability) {
  std::vector<Focus> all;
  for (const Place& place : kPlaces)
    for (const auto& [fault, times] : counts[place.name])
      for (int i = 0; i < place.weight; ++i) all.push_back({place.name, fault, probability});
  focuses.push_back(all[number % all.size()]);
}

void focus_nowhere() { focuses.clear(); }
bool is_focused(const std::string& where) {
  return std::ranges::any_of(focuses, [&](const Focus& focus) { return focus.where == where; });
}

bool strikes(const std::string& where, const std::string& what, double probability) {
  probability = odds(where, what, probability);
  if (probability == 0 || !chance().with(probability)) return false;
  count(where, what);
  return true;
}

std::string never_tried(bool each_fault) {
  std::string all;
  for (const auto& [where, faults] : counts) {
    std::string missing;
    for (const auto& [what, times] : faults)
      if (*times == 0) missing += " " + where + "/" + what;
    const bool none = std::ranges::all_of(faults, [](const auto& fault) { return *fault.second == 0; });
    if (each_fault || none) all += missing;
  }
  return all;
}

void print_census() {
  for (const auto& [where, faults] : counts) {
    std::printf("%-16s", where.c_str());
    for (const auto& [what, times] : faults)
      std::printf(" %s %llu", what.c_str(), static_cast<unsigned long long>(*times));
    std::printf("\n");
  }
}

}  // namespace kbench::sim
