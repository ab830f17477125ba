// The machine under kbenchd: a Docker Engine with its images and containers, which outlive the program and sometimes
// misbehave. host.cpp implements engine::Engine over it (in place of daemon/engine) and a Receiver that hears nothing
// (in place of daemon/grader/receiver.cpp): events arrive by the spooled file, as they do when the connection is lost.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/engine/engine.h"
#include "daemon/gpu/gpu.h"

namespace kbench::sim {

class Host {
 public:
  static Host* current;  // what engine::Engine talks to

  // Probabilities, of calls and of containers; all zero: a machine in good order.
  struct Faults {
    double lost = 0;      // no answer; what was asked happens half of the time
    double refused = 0;   // 500
    double full = 0;      // no space, of what makes something
    double slow = 0;      // a call takes up to a minute
    double stuck = 0;     // a container that cannot be killed for a while
    double hangs = 0;     // a container that never ends by itself
    double ill = 0;       // a GPU that the verifier complains of
    double dies = 0;      // a container that ends without a result
    double restarts = 0;  // of the Engine, at each call
  } faults;

  struct Box {
    engine::Container facts;
    engine::ContainerSpec spec;
    std::int64_t ends_ms = 0;  // running ones; 0: never
    std::int64_t unkillable_until_ms = 0;
    bool result = true;
    std::vector<std::string> holds;  // GPUs and uid ranges that it measures on
  };
  std::map<std::string, Box> boxes;  // by id
  std::set<std::string> images = {"kbench/base:cpu", "kbench/base:cuda"};
  // The reward that the measurement of (submission, attempt) came to.
  std::map<std::pair<std::string, int>, double> rewards;

  // Before each call: time passes, things go wrong. Throws EngineError. `makes`: it needs space.
  void enter(const char* call, bool makes = false);
  // After what was asked has happened: the answer may be lost.
  void leave(const char* call);
  void settle();  // containers whose time has come end
  bool is_down() const;
  void start(Box& box);
  void kill(Box& box);
  Box* find(const std::string& id_or_name);
  int made = 0;                    // containers
  std::uint64_t disturbances = 0;  // times that all connections broke

 private:
  void finish(Box& box);
  std::int64_t down_until_ms_ = 0;
  bool lose_answer_ = false;
  int measured_ = 0;
};

// Two GPUs that are always well.
class Inventory : public gpu::Inventory {
 public:
  std::vector<gpu::Gpu> list() override;
  std::optional<std::string> fault(const std::string&) override { return {}; }
  int processes(const std::string&) override { return 0; }
  std::optional<Xid> next_xid(std::chrono::milliseconds patience) override;
};

}  // namespace kbench::sim
