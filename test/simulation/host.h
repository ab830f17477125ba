// The machine under kbenchd: a Docker Engine with its images and containers, its GPUs, and the file system of the work
// folder; they outlive the program and sometimes misbehave. host.cpp implements engine::Engine over it (in place of
// daemon/engine) and a Receiver that hears nothing (in place of daemon/grader/receiver.cpp): events arrive by the
// spooled file, as they do when the connection is lost.
#pragma once

#include <functional>
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
  Host();

  // Probabilities, of calls and of containers; all zero: a machine in good order.
  struct Faults {
    double lost = 0;      // no answer; what was asked happens, or never does, or later
    double refused = 0;   // 500
    double full = 0;      // no space, of what makes something
    double slow = 0;      // a call takes up to a minute
    double stuck = 0;     // a container that cannot be killed for a while
    double hangs = 0;     // a container that never ends by itself
    double ill = 0;       // a GPU that the verifier complains of
    double dies = 0;      // a container that ends without a result
    double restarts = 0;  // of the Engine, at each call
    double pruned = 0;    // an image that somebody else removes, at each call
    double gpus = 0;      // a GPU that is lost, has an XID, or is not left by a process
    double absent = 0;    // a GPU that is not there at a start
    double stalls = 0;    // of the program, each second
    double folder = 0;    // calls to the work folder's file system, of us and of containers
  } faults;
  std::string work_folder;
  std::function<void()> on_restart;

  struct Box {
    engine::Container facts;
    engine::ContainerSpec spec;
    std::int64_t ends_ms = 0;  // running ones; 0: never
    std::int64_t unkillable_until_ms = 0;
    bool result = true;
    int life = 0;                    // of the program, that asked for it
    std::vector<std::string> holds;  // GPUs and uid ranges that it measures on
  };
  std::map<std::string, Box> boxes;  // by id
  Box* find(const std::string& id_or_name);
  void start(Box& box);
  void kill(Box& box, const char* call);  // `call`: that counts when it cannot be

  std::map<std::string, engine::Image> images;  // by id
  engine::Image* image(const std::string& id_or_tag);
  std::string add_image(const std::vector<std::string>& tags, const std::map<std::string, std::string>& labels);
  void remove_image(const std::string& id_or_tag);
  void leave_scraps(const std::map<std::string, std::string>& labels);  // of a build that came to no end
  void prune_one();                                                     // by somebody else
  std::set<std::string> images_we_removed;

  using Run = std::pair<std::string, int>;            // submission, attempt
  std::map<Run, double> rewards;                      // that its measurement came to
  std::map<Run, std::set<std::string>> bad_verdicts;  // that it may have, for what its containers did

  std::map<std::string, std::int64_t> gpu_lost_until_ms;  // by uuid
  bool is_lost(const std::string& gpu) const;

  void settle();  // what was to happen by now happens: containers end, late calls take effect
  bool is_down() const;
  void restart();
  void later(std::function<void()> what);
  bool owes() const { return !later_.empty(); }  // something will yet happen that nobody waits for
  int life = 0;                                  // of the program: its number
  int made = 0;                                  // containers and images
  std::uint64_t disturbances = 0;                // times that all connections broke
  bool container_writes = false;                 // not the program

 private:
  void finish(Box& box);
  std::int64_t down_until_ms_ = 0, bases_back_ms_ = 0;
  std::multimap<std::int64_t, std::function<void()>> later_;
  bool late_ = false;  // a call is done that nobody waits for
  int measured_ = 0;
};

// A call to the Engine. Throws EngineError when it does not get there, and when its answer does not come back.
class Call {
 public:
  explicit Call(const char* name, bool makes = false);  // `makes`: it needs space
  // Does what was asked; or leaves it to the Engine, which does it when we have given up.
  void change(const std::function<void()>& what);
  void answered();
  bool is_cut() const;

 private:
  void travel();
  engine::EngineError lost(const char* how) const;
  const char* name_;
  std::uint64_t disturbances_ = 0;
  bool loses_answer_ = false;
};

class Inventory : public gpu::Inventory {  // two GPUs
 public:
  std::vector<gpu::Gpu> list() override;
  std::optional<std::string> fault(const std::string& uuid) override;
  int processes(const std::string& uuid) override;
  std::optional<Xid> next_xid(std::chrono::milliseconds patience) override;

 private:
  std::map<std::string, std::int64_t> haunted_until_ms_;
};

}  // namespace kbench::sim
