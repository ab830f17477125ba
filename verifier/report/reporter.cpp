#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "kbench/events.h"
#include "verifier/report/report.h"
#include "verifier/report/spool.h"

namespace kbench::report {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

void cut_strings(json& value, std::size_t bytes_max) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (text.size() <= bytes_max) return;
    const std::size_t lost = text.size() - bytes_max;
    text.resize(bytes_max);
    text += "…[" + std::to_string(lost) + " bytes cut]";
  } else if (value.is_structured()) {
    for (auto& item : value) cut_strings(item, bytes_max);
  }
}

std::string line_of(const json& event) { return event.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

// A line within the schema's limit, whatever is in the fields.
std::string bounded_line(json event) {
  std::string line = line_of(event);
  for (std::size_t bytes_max = events::kEventBytesMax / 2; line.size() > events::kEventBytesMax; bytes_max /= 2) {
    if (bytes_max < 64) {
      json bare = {{"seq", event["seq"]}, {"ms", event["ms"]}, {"type", event["type"]}, {"cut", true}};
      return line_of(bare);
    }
    cut_strings(event, bytes_max);
    event["cut"] = true;
    line = line_of(event);
  }
  return line;
}

class SpoolingReporter final : public Reporter {
 public:
  SpoolingReporter(const std::string& out_folder, const std::string& socket_folder) : start_(Clock::now()) {
    const std::string path = out_folder + "/events.ndjson";
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    spool_.fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (spool_.fd < 0) throw std::system_error(errno, std::generic_category(), "cannot create " + path);
    if (!socket_folder.empty()) sender_ = std::make_unique<Sender>(spool_, socket_folder + "/report.sock");
  }

  ~SpoolingReporter() override {
    if (sender_) {
      std::unique_lock lock(spool_.mutex);
      spool_.changed.wait_for(lock, std::chrono::seconds(kFlushSeconds),
                              [&] { return spool_.sent >= spool_.count_locked(); });
    }
    sender_.reset();
    ::close(spool_.fd);
  }

  void event(const char* type, json fields) override {
    const std::int64_t seq = next_seq_;
    const bool progress = std::strcmp(type, events::kProgress) == 0;
    const bool last = std::strcmp(type, events::kVerdict) == 0 || std::strcmp(type, events::kInfra) == 0;
    if (seq > events::kEventsMax - (last ? 0 : progress ? kEndReserve : 1)) return;
    json event = fields.is_object() ? std::move(fields) : json::object();
    event["seq"] = seq;
    event["ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
    event["type"] = type;
    append(bounded_line(std::move(event)));
    ++next_seq_;
  }

 private:
  void append(const std::string& line) {
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t wrote = ::write(spool_.fd, line.data() + done, line.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) throw std::system_error(errno, std::generic_category(), "cannot write events.ndjson");
      done += static_cast<std::size_t>(wrote);
    }
    bytes_ += line.size();
    const std::scoped_lock lock(spool_.mutex);
    spool_.ends.push_back(bytes_);
    spool_.changed.notify_all();
  }

  const Clock::time_point start_;
  Spool spool_;
  std::uint64_t bytes_ = 0;
  std::int64_t next_seq_ = 1;
  std::unique_ptr<Sender> sender_;
};

}  // namespace

std::unique_ptr<Reporter> Reporter::open(const std::string& out_folder, const std::string& socket_folder) {
  return std::make_unique<SpoolingReporter>(out_folder, socket_folder);
}

}  // namespace kbench::report
