// What a grading says: events as it goes, reward.json and details.json at its end.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kbench::report {

// Numbered events: appended to `<out>/events.ndjson`, then sent to `<socket folder>/report.sock` from a thread of their own; a
// listener that is away, slow or wrong never delays or fails the grading. With an empty socket folder they are only spooled.
class Reporter {
 public:
  static std::unique_ptr<Reporter> open(const std::string& out_folder, const std::string& socket_folder);
  virtual ~Reporter() = default;                       // flushes, for at most kFlushSeconds
  virtual void event(const char* type, nlohmann::json fields) = 0;
};

inline constexpr int kFlushSeconds = 5;

// Writes are atomic (temporary file, rename). reward.json holds {"reward": x} alone; a reward that is not finite throws.
void write_reward(const std::string& out_folder, double reward);
void write_details(const std::string& out_folder, const nlohmann::json& details);
void remove_results(const std::string& out_folder);    // planted reward.json, reward.txt, details.json

}  // namespace kbench::report
