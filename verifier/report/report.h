// What a grading says: events as it goes, reward.json and details.json at its end.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kbench::report {

// Numbered events: appended to `<out>/events.ndjson`, then sent to `<socket folder>/report.sock` from a thread of their
// own; a listener that is away, slow or wrong never delays or fails the grading. With an empty socket folder they are
// only spooled.
class Reporter {
 public:
  static std::unique_ptr<Reporter> open(const std::string& out_folder, const std::string& socket_folder);
  virtual ~Reporter() = default;  // flushes, for at most kFlushSeconds
  // Fields too long for a line are cut and say so. Throws std::system_error when the spool cannot be written.
  virtual void event(const char* type, nlohmann::json fields) = 0;
};

inline constexpr int kFlushSeconds = 5;
inline constexpr int kExchangeSeconds = 10;  // for one request to the listener, from connect to the last byte
inline constexpr int kBackoffMsMax = 2000;   // between attempts to reach it; starts at kBackoffMsMin and doubles
inline constexpr int kBackoffMsMin = 50;
inline constexpr int kBatchBytesMax = 256 * 1024;  // of one POST
inline constexpr int kEndReserve = 200;  // of kEventsMax, kept free of progress for what must be said at the end

// Writes are atomic (temporary file, rename). reward.json holds {"reward": x} alone; a reward that is not finite
// throws.
void write_reward(const std::string& out_folder, double reward);
void write_details(const std::string& out_folder, const nlohmann::json& details);
void write_infra_error(const std::string& out_folder, const std::string& cause, const std::string& message);
void remove_results(
    const std::string& out_folder);  // planted reward.json, reward.txt, details.json, infra_error.json, events.ndjson

}  // namespace kbench::report
