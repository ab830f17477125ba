#include <filesystem>
#if __has_include(<toml++/toml.h>)  // absent where the cpu base image is built: a processor has no entry anyway
#include <toml++/toml.h>
#define KBENCH_TOML 1
#endif

#include "verifier/grade/prepare.h"

namespace kbench::grade {

measure::Peaks load_peaks(const std::string& device_name) {
  const std::string path = installed("share") + "/gpus.toml";
  measure::Peaks peaks;
  if (!std::filesystem::exists(path)) return peaks;
#ifdef KBENCH_TOML
  try {
    const toml::table file = toml::parse_file(path);
    const toml::array* gpus = file["gpu"].as_array();
    for (std::size_t i = 0; gpus != nullptr && i < gpus->size(); ++i) {
      const toml::table& gpu = *gpus->get(i)->as_table();
      bool named = false;
      if (const toml::array* names = gpu["names"].as_array()) {
        for (const toml::node& name : *names) named |= name.value_or(std::string()) == device_name;
      }
      if (!named) continue;
      if (const toml::table* rates = gpu["rates"].as_table()) {
        for (const auto& [kind, rate] : *rates) peaks.operations[std::string(kind.str())] = rate.value_or(0.0);
      }
      peaks.memory_bytes = gpu["bus_bits"][device_name].value_or(0.0) / 8 * gpu["transfers_per_clock"].value_or(0.0);
    }
  } catch (const toml::parse_error& fault) {
    throw GradeFault("files", path + ": " + std::string(fault.description()));
  }
#endif
  return peaks;
}

}  // namespace kbench::grade
