#include "daemon/grader/event_log.h"

#include <kbench/events.h>

#include <nlohmann/json.hpp>

namespace kbench::grader {

using Json = nlohmann::json;

namespace {

bool is_type(const std::string& text) {
  if (text.empty() || text.size() > 64) return false;
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

}  // namespace

EventLog::Answer EventLog::take(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.empty()) continue;
    const Answer answer = take_line(line);
    if (answer.status != 200) return answer;
  }
  return {200, next_};
}

EventLog::Answer EventLog::take_line(std::string_view line) {
  if (line.size() > events::kEventBytesMax) return {400, next_};
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) return {400, next_};
  const auto seq = event.find("seq"), type = event.find("type");
  if (seq == event.end() || !seq->is_number_integer() || type == event.end() || !type->is_string()) return {400, next_};
  const auto number = seq->get<std::int64_t>();
  const auto name = type->get<std::string>();
  if (number < 1 || !is_type(name)) return {400, next_};
  if (number < next_) return {200, next_};
  if (number > next_) return {409, next_};
  if (number > events::kEventsMax) return {429, next_};
  if (last_) return {400, next_};  // nothing comes after the last one
  if (name == events::kVerdict || name == events::kInfra) {
    last_ = std::string(line);
  } else {
    sink_(number, name, std::string(line));
  }
  ++next_;
  return {200, next_};
}

std::int64_t EventLog::next() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

std::optional<std::string> EventLog::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::int64_t EventLog::last_seq() const {
  const std::lock_guard lock(mutex_);
  return next_ - 1;
}

}  // namespace kbench::grader
