// What submissions are measured on: slots (a GPU, or a set of CPUs, each with uids of its own), how a GPU gets into a
// container, and when it must not be used any more.
//
// Tried on hardware: nothing of this header in CI. `Inventory` over NVML runs against a library that imitates it, the
// attach modes against the Engine's API alone; scripts/gpu/ goes through `devices` and NVML on a real GPU.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/engine/engine.h"

namespace kbench::gpu {

struct Gpu {
  std::string uuid, model, driver;  // "GPU-…" (or "MIG-…"), "NVIDIA H200", "580.95.05"
  int minor = -1;                   // of /dev/nvidiaN; not an index
  std::uint64_t memory_bytes = 0;
};

// What the driver says. Safe from any thread.
class Inventory {
 public:
  virtual ~Inventory() = default;
  virtual std::vector<Gpu> list() = 0;
  // Why this GPU must not be used: lost, or memory errors that could not be corrected. nullopt: no reason.
  virtual std::optional<std::string> fault(const std::string& uuid) = 0;
  virtual int processes(const std::string& uuid) = 0;  // computing on it now; 0 when the driver does not tell
  struct Xid {
    std::string uuid;
    int code;
  };
  virtual std::optional<Xid> next_xid(
      std::chrono::milliseconds patience) = 0;  // sleeps it off where there are no events
};
// Null when the library or the driver is not there: no GPUs.
std::unique_ptr<Inventory> open_nvml(const std::string& library = "libnvidia-ml.so.1");

enum class XidKind : std::uint8_t {
  hardware,
  kernel,
  other
};  // hardware: quarantine; kernel: a bad kernel does that, recorded only
XidKind kind_of_xid(int code);

enum class Mode : std::uint8_t { automatic, nvidia, cdi, devices, none };
const char* name_of(Mode mode);
std::optional<Mode> mode_named(const std::string& name);

struct AttachOptions {
  Mode mode = Mode::automatic;
  // Mode devices: what the host's driver needs inside, besides /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidiaN.
  std::vector<std::string> nodes;
  std::vector<engine::Mount> mounts;
  std::map<std::string, std::string> env;
};
// What `automatic` is here: an nvidia runtime, else CDI, else devices where mounts are configured, else none.
Mode resolve(const AttachOptions& options, const engine::Info& info);
// Adds the GPUs to a container. Without any: makes sure that it sees none (images of CUDA ask for all).
// Throws std::invalid_argument for GPUs in mode none or automatic.
void attach(engine::ContainerSpec& spec, Mode mode, const AttachOptions& options, const std::vector<Gpu>& gpus);
// The toolchain's mounts and environment alone: for containers that compile for a GPU and get none.
void attach_toolchain(engine::ContainerSpec& spec, Mode mode, const AttachOptions& options);

struct Slot {
  int index = 0;
  std::string device;          // cpu | cuda
  std::string cpuset;          // "2-3"; empty: all
  std::uint32_t uid_base = 0;  // of 32 uids that nobody else has
  std::optional<Gpu> gpu;
};

struct SlotOptions {
  std::vector<std::string> cpu_slots;              // a cpuset each
  bool gpus = true;                                // every GPU found, but for:
  std::vector<std::string> gpus_excluded;          // uuids
  std::map<std::string, std::string> gpu_cpusets;  // uuid -> cpuset
  std::uint32_t uid_first = 200'000, uids_per_slot = 32;
  int gpu_faults_max = 2;  // gradings in a row that a GPU's own fault may end before quarantine
};
std::vector<Slot> make_slots(const SlotOptions& options, const std::vector<Gpu>& gpus);

enum class SlotState : std::uint8_t { ready, busy, quarantined };
const char* name_of(SlotState state);

struct SlotView {
  Slot slot;
  SlotState state;
  std::string reason, holder;  // of the quarantine; the submission that holds it
};

struct NoSlot : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Who measures on what. Safe from any thread. Quarantine lasts until release_quarantine or a restart.
class Slots {
 public:
  explicit Slots(std::vector<Slot> slots, int gpu_faults_max = 2);

  // Slots held together, given back by the destructor. A quarantined one stays so.
  class Held {
   public:
    Held(Held&& other) noexcept;
    Held& operator=(Held&&) = delete;
    ~Held();
    const std::vector<Slot>& slots() const { return slots_; }
    std::vector<Gpu> gpus() const;
    std::string cpuset() const;  // of all of them

   private:
    friend class Slots;
    Held(Slots* owner, std::vector<Slot> slots) : owner_(owner), slots_(std::move(slots)) {}
    Slots* owner_;
    std::vector<Slot> slots_;
  };
  // Waits for `count` slots of the device (and model, if asked) at once. Submitters take turns; of one submitter's who
  // came first is served first. What fits a later one is left for an earlier one that waits for more. nullopt: stopped.
  // Throws NoSlot when quarantine leaves too few.
  std::optional<Held> acquire(const std::string& device, int count, const std::string& model, const std::string& holder,
                              const std::stop_token& stop, const std::string& submitter = {});
  int usable(const std::string& device) const;  // not quarantined
  std::vector<std::string> models() const;      // of usable GPUs
  // The model that most usable GPUs are of, and how many: several GPUs of one task are of one model.
  struct Kind {
    std::string model;
    int count = 0;
  };
  Kind commonest() const;
  void quarantine(int index, const std::string& reason);
  void quarantine_gpu(const std::string& uuid, const std::string& reason);
  void release_quarantine(int index);
  // How a grading on these slots ended: too many GPU faults in a row are a quarantine.
  void judge(const Held& held, bool gpu_fault, const std::string& reason);
  std::vector<SlotView> view() const;

 private:
  struct Entry {
    Slot slot;
    SlotState state = SlotState::ready;
    std::string reason, holder;
    int faults = 0;
  };
  struct Waiter {
    std::string device, model;
    std::size_t wanted;
    std::int64_t turn;
  };
  // Start-time fair queueing (Goyal et al., 1996): a submitter's turns follow each other, the first is the one that is
  // served now. So a backlog that is ready lets others pass; and as `now` moves on, each of it has its turn.
  struct Turns {
    std::int64_t now = 0;
    std::map<std::string, std::int64_t> next;  // by submitter; those beyond now
  };
  std::vector<Entry*> matching(const Waiter& waiter);
  std::vector<Entry*> free_for(const Waiter& waiter);
  void give_back(const std::vector<Slot>& slots);
  const int gpu_faults_max_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Entry> entries_;
  std::list<const Waiter*> waiters_;    // in the order in which they are served
  std::map<std::string, Turns> turns_;  // by device
};

}  // namespace kbench::gpu
