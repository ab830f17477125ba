#include <algorithm>

#include "client/client.h"

namespace kbench::client {

void EventParser::feed(std::string_view bytes, const std::function<void(const Event&)>& on_event) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const auto end = bytes.find_first_of("\r\n");
    pending_.append(bytes.substr(0, end));
    if (pending_.size() + data_.size() > kEventBytesMax)
      throw Unreachable("the server sent an event of more than a megabyte");
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    std::string whole;
    whole.swap(pending_);
    line(whole, on_event);
  }
}

void EventParser::line(std::string_view text, const std::function<void(const Event&)>& on_event) {
  if (text.empty()) {
    if (has_data_) on_event({id_, type_.empty() ? "message" : type_, data_});
    type_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const auto colon = std::min(text.find(':'), text.size());
  const auto name = text.substr(0, colon);
  auto value = text.substr(std::min(colon + 1, text.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id" && value.find('\0') == std::string_view::npos) id_ = value;
  if (name == "event") type_ = value;
  if (name == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
}

}  // namespace kbench::client
