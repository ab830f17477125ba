#include <algorithm>
#include <stdexcept>

#include "daemon/gpu/gpu.h"

namespace kbench::gpu {

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::automatic:
      return "auto";
    case Mode::nvidia:
      return "nvidia";
    case Mode::cdi:
      return "cdi";
    case Mode::devices:
      return "devices";
    case Mode::none:
      return "none";
  }
  return "?";
}

std::optional<Mode> mode_named(const std::string& name) {
  for (const Mode mode : {Mode::automatic, Mode::nvidia, Mode::cdi, Mode::devices, Mode::none})
    if (name == name_of(mode)) return mode;
  return std::nullopt;
}

Mode resolve(const AttachOptions& options, const engine::Info& info) {
  if (options.mode != Mode::automatic) return options.mode;
  const bool cdi = std::any_of(info.cdi_devices.begin(), info.cdi_devices.end(),
                               [](const std::string& device) { return device.starts_with("nvidia.com/gpu="); });
  // Podman ignores device requests of any driver but cdi without a word: the container would come up with no GPU.
  const bool runtime = std::find(info.runtimes.begin(), info.runtimes.end(), "nvidia") != info.runtimes.end();
  if (runtime && !info.podman) return Mode::nvidia;
  if (cdi) return Mode::cdi;
  return options.mounts.empty() ? Mode::none : Mode::devices;
}

void attach_toolchain(engine::ContainerSpec& spec, Mode mode, const AttachOptions& options) {
  spec.env["NVIDIA_VISIBLE_DEVICES"] =
      "void";  // with a default runtime of nvidia, an image of CUDA would get every GPU
  if (mode != Mode::devices) return;
  spec.mounts.insert(spec.mounts.end(), options.mounts.begin(), options.mounts.end());
  for (const auto& [name, value] : options.env) spec.env[name] = value;
}

void attach(engine::ContainerSpec& spec, Mode mode, const AttachOptions& options, const std::vector<Gpu>& gpus) {
  attach_toolchain(spec, mode, options);
  if (gpus.empty()) return;
  engine::DeviceRequest request;
  switch (mode) {
    case Mode::nvidia:
      spec.env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility";
      spec.env.erase("NVIDIA_VISIBLE_DEVICES");  // the Engine sets it from the request; ours would be a second entry
      request.driver = "nvidia";
      request.capabilities = {"gpu", "compute", "utility"};
      for (const Gpu& gpu : gpus) request.ids.push_back(gpu.uuid);
      spec.device_requests.push_back(request);
      return;
    case Mode::cdi:
      request.driver = "cdi";
      for (const Gpu& gpu : gpus) request.ids.push_back("nvidia.com/gpu=" + gpu.uuid);
      spec.device_requests.push_back(request);
      return;
    case Mode::devices:
      // nvidia-uvm-tools is left out on purpose: it lets one process watch another's memory events.
      for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) spec.devices.push_back({node});
      for (const Gpu& gpu : gpus) {
        if (gpu.minor < 0)
          throw std::invalid_argument("GPU " + gpu.uuid + " has no minor number: its node is not known");
        spec.devices.push_back({"/dev/nvidia" + std::to_string(gpu.minor)});
      }
      for (const std::string& node : options.nodes) spec.devices.push_back({node});
      return;
    case Mode::none:
    case Mode::automatic:
      break;
  }
  throw std::invalid_argument(std::string("no GPU can be attached in mode ") + name_of(mode));
}

XidKind kind_of_xid(int code) {
  for (const int hardware : {48, 63, 64, 74, 79, 94, 95, 119, 120, 140})
    if (code == hardware) return XidKind::hardware;
  for (const int kernel : {13, 31, 43, 45})
    if (code == kernel) return XidKind::kernel;
  return XidKind::other;
}

}  // namespace kbench::gpu
