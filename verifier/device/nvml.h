// NVML, loaded at run time: what the driver says about one GPU. Absent library or a function the driver lacks: the
// value is nullopt.
//
// Units: MHz, degrees Celsius, bytes. Source: NVIDIA's NVML API reference; no header of the toolkit is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kbench::verify {

struct GpuReading {
  std::optional<std::uint64_t> reasons;  // clocks event reasons, see kHardwareSlowdown
  std::optional<unsigned> sm_clock_mhz, memory_clock_mhz, temperature_c;
  std::optional<double> power_w;
  std::optional<int> compute_processes;
  std::optional<std::uint64_t> ecc_uncorrected;  // volatile count
};

inline constexpr std::uint64_t kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                               kPowerBrake = 0x80;
std::vector<std::string> slowdown_names(
    std::uint64_t reasons);  // those that void a measurement; a software power cap does not

class Nvml {
 public:
  // The GPU with this uuid ("GPU-…"). Null when NVML or the GPU is not there.
  static std::unique_ptr<Nvml> open(const std::string& uuid);
  virtual ~Nvml() = default;
  virtual std::string driver_version() = 0;
  virtual std::optional<unsigned> clock_mhz_max(bool memory) = 0;
  virtual std::optional<unsigned> memory_bus_bits() = 0;
  virtual GpuReading read() = 0;
};

}  // namespace kbench::verify
