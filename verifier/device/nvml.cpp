#include "verifier/device/nvml.h"

#include <dlfcn.h>

namespace kbench::verify {
namespace {

using Handle = void*;
constexpr int kOk = 0, kInsufficientSize = 7;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureGpu = 0;
constexpr int kEccUncorrected = 1, kEccVolatile = 0;

// Laid out as nvmlProcessInfo_t of the _v3 entry point; only the count is used.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

class Loaded : public Nvml {
 public:
  explicit Loaded(void* library) : library_(library) {}
  ~Loaded() override {
    if (ready_) call<int()>("nvmlShutdown");
    dlclose(library_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  bool attach(const std::string& uuid) {
    if (call<int()>("nvmlInit_v2") != kOk) return false;
    ready_ = true;
    return call<int(const char*, Handle*)>("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device_) == kOk;
  }

  std::string driver_version() override {
    char text[96] = {};
    if (call<int(char*, unsigned)>("nvmlSystemGetDriverVersion", text, unsigned{sizeof text - 1}) != kOk) return "";
    return text;
  }

  std::optional<unsigned> clock_mhz_max(bool memory) override {
    return number<unsigned, int>("nvmlDeviceGetMaxClockInfo", memory ? kClockMemory : kClockSm);
  }
  std::optional<unsigned> memory_bus_bits() override { return number<unsigned>("nvmlDeviceGetMemoryBusWidth"); }

  GpuReading read() override {
    GpuReading reading;
    if (auto reasons = number<unsigned long long>("nvmlDeviceGetCurrentClocksEventReasons"))
      reading.reasons = *reasons;
    else if (auto older = number<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons"))
      reading.reasons = *older;
    reading.sm_clock_mhz = number<unsigned, int>("nvmlDeviceGetClockInfo", kClockSm);
    reading.memory_clock_mhz = number<unsigned, int>("nvmlDeviceGetClockInfo", kClockMemory);
    reading.temperature_c = number<unsigned, int>("nvmlDeviceGetTemperature", kTemperatureGpu);
    if (auto milliwatts = number<unsigned>("nvmlDeviceGetPowerUsage")) reading.power_w = *milliwatts * 1e-3;
    if (auto errors =
            number<unsigned long long, int, int>("nvmlDeviceGetTotalEccErrors", kEccUncorrected, kEccVolatile))
      reading.ecc_uncorrected = *errors;
    reading.compute_processes = processes();
    return reading;
  }

 private:
  template <class Signature, class... Args>
  int call(const char* name, Args... args) {
    auto* function = reinterpret_cast<Signature*>(dlsym(library_, name));
    return function ? function(args...) : -1;
  }
  template <class T, class... Args>
  std::optional<T> number(const char* name, Args... args) {
    T value{};
    if (call<int(Handle, Args..., T*)>(name, device_, args..., &value) != kOk) return std::nullopt;
    return value;
  }
  std::optional<int> processes() {
    ProcessInfo list[64];
    unsigned count = 64;
    const int rc =
        call<int(Handle, unsigned*, ProcessInfo*)>("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, list);
    if (rc != kOk && rc != kInsufficientSize) return std::nullopt;
    return static_cast<int>(count);
  }

  void* library_;
  Handle device_ = nullptr;
  bool ready_ = false;
};

}  // namespace

std::vector<std::string> slowdown_names(std::uint64_t reasons) {
  std::vector<std::string> names;
  if (reasons & kHardwareSlowdown) names.push_back("throttle: hardware slowdown");
  if (reasons & kSoftwareThermal) names.push_back("throttle: software thermal");
  if (reasons & kHardwareThermal) names.push_back("throttle: hardware thermal");
  if (reasons & kPowerBrake) names.push_back("throttle: power brake");
  return names;
}

std::unique_ptr<Nvml> Nvml::open(const std::string& uuid) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  auto nvml = std::make_unique<Loaded>(library);
  if (!nvml->attach(uuid)) return nullptr;
  return nvml;
}

}  // namespace kbench::verify
