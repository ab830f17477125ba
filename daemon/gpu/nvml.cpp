// NVML by dlopen: a host without a driver is a host without GPUs, not an error.
#include <dlfcn.h>

#include <cstring>
#include <thread>

#include "daemon/gpu/gpu.h"

namespace kbench::gpu {

namespace {

using Device = void*;
using EventSet = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
// They are handed over as void*: a library in C has no types of ours.
constexpr int kOk = 0, kTooSmall = 7, kGpuLost = 15, kTimeout = 10;
constexpr unsigned long long kXidEvents = 8;
constexpr int kUncorrected = 1, kVolatile = 0;
constexpr unsigned kTextBytes = 96;

class Nvml final : public Inventory {
 public:
  static std::unique_ptr<Nvml> open(const std::string& path) {
    std::unique_ptr<Nvml> made(new Nvml(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)));
    if (!made->library_ || !made->load_all() || made->init_() != kOk) return nullptr;
    made->ready_ = true;
    made->watch_events();
    return made;
  }
  ~Nvml() override {
    if (events_) event_set_free_(events_);
    if (ready_) shutdown_();
    if (library_) ::dlclose(library_);
  }

  std::vector<Gpu> list() override {
    std::vector<Gpu> gpus;
    char driver[kTextBytes] = "";
    driver_version_(driver, kTextBytes);
    for (unsigned index = 0; index < count(); ++index) {
      Device device = nullptr;
      if (by_index_(index, &device) != kOk) continue;  // a lost GPU has no handle: it is no slot
      char uuid[kTextBytes] = "", model[kTextBytes] = "";
      unsigned minor = 0;
      Memory memory{};
      if (uuid_(device, uuid, kTextBytes) != kOk) continue;
      Gpu gpu{uuid, "", driver, -1, 0};
      if (name_(device, model, kTextBytes) == kOk) gpu.model = model;
      if (minor_(device, &minor) == kOk) gpu.minor = static_cast<int>(minor);
      if (memory_(device, &memory) == kOk) gpu.memory_bytes = memory.total;
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

  std::optional<std::string> fault(const std::string& uuid) override {
    Device device = nullptr;
    if (by_uuid_(uuid.c_str(), &device) != kOk) return "the driver does not find it any more";
    Memory memory{};
    if (memory_(device, &memory) == kGpuLost) return "the driver lost it";
    unsigned long long errors = 0;
    if (ecc_(device, kUncorrected, kVolatile, &errors) == kOk && errors > 0)
      return std::to_string(errors) + " memory errors that could not be corrected";
    return std::nullopt;
  }

  int processes(const std::string& uuid) override {
    Device device = nullptr;
    Process list[64];
    unsigned count = 64;
    if (by_uuid_(uuid.c_str(), &device) != kOk) return 0;
    const int result = processes_(device, &count, list);
    return result == kOk || result == kTooSmall ? static_cast<int>(count) : 0;
  }

  std::optional<Xid> next_xid(std::chrono::milliseconds patience) override {
    EventData event{};
    if (!events_) {
      std::this_thread::sleep_for(patience);
      return std::nullopt;
    }
    const int result = event_wait_(events_, &event, static_cast<unsigned>(patience.count()));
    if (result != kOk) {
      if (result != kTimeout) std::this_thread::sleep_for(patience);
      return std::nullopt;
    }
    char uuid[kTextBytes] = "";
    uuid_(event.device, uuid, kTextBytes);
    return Xid{uuid, static_cast<int>(event.data)};
  }

 private:
  explicit Nvml(void* library) : library_(library) {}

  template <class Function>
  bool load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    return function != nullptr;
  }
  bool load_all() {
    return load(init_, "nvmlInit_v2") && load(shutdown_, "nvmlShutdown") && load(count_, "nvmlDeviceGetCount_v2") &&
           load(by_index_, "nvmlDeviceGetHandleByIndex_v2") && load(by_uuid_, "nvmlDeviceGetHandleByUUID") &&
           load(uuid_, "nvmlDeviceGetUUID") && load(name_, "nvmlDeviceGetName") &&
           load(minor_, "nvmlDeviceGetMinorNumber") && load(memory_, "nvmlDeviceGetMemoryInfo") &&
           load(driver_version_, "nvmlSystemGetDriverVersion") && load(ecc_, "nvmlDeviceGetTotalEccErrors") &&
           load(processes_, "nvmlDeviceGetComputeRunningProcesses_v3") &&
           load(event_set_create_, "nvmlEventSetCreate") && load(event_set_free_, "nvmlEventSetFree") &&
           load(register_events_, "nvmlDeviceRegisterEvents") && load(event_wait_, "nvmlEventSetWait_v2");
  }
  unsigned count() {
    unsigned number = 0;
    return count_(&number) == kOk ? number : 0;
  }
  // Not every host lets us: then faults are found by probes and by the verifier alone.
  void watch_events() {
    if (event_set_create_(&events_) != kOk) events_ = nullptr;
    bool any = false;
    for (unsigned index = 0; events_ && index < count(); ++index) {
      Device device = nullptr;
      if (by_index_(index, &device) == kOk) any = register_events_(device, kXidEvents, events_) == kOk || any;
    }
    if (events_ && !any) {
      event_set_free_(events_);
      events_ = nullptr;
    }
  }

  void* library_;
  bool ready_ = false;
  EventSet events_ = nullptr;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*by_index_)(unsigned, Device*) = nullptr;
  int (*by_uuid_)(const char*, Device*) = nullptr;
  int (*uuid_)(Device, char*, unsigned) = nullptr;
  int (*name_)(Device, char*, unsigned) = nullptr;
  int (*minor_)(Device, unsigned*) = nullptr;
  int (*memory_)(Device, void*) = nullptr;
  int (*driver_version_)(char*, unsigned) = nullptr;
  int (*ecc_)(Device, int, int, unsigned long long*) = nullptr;
  int (*processes_)(Device, unsigned*, void*) = nullptr;
  int (*event_set_create_)(EventSet*) = nullptr;
  int (*event_set_free_)(EventSet) = nullptr;
  int (*register_events_)(Device, unsigned long long, EventSet) = nullptr;
  int (*event_wait_)(EventSet, void*, unsigned) = nullptr;
};

}  // namespace

std::unique_ptr<Inventory> open_nvml(const std::string& library) { return Nvml::open(library); }

}  // namespace kbench::gpu
