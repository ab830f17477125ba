// Small texts of the protocol: an event of a stream, UTF-8, header look-up.
#include <algorithm>
#include <cctype>

#include "daemon/http/http.h"

namespace kbench::http {

std::string_view Request::header(std::string_view name) const {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto it = headers.find(lower);
  return it == headers.end() ? std::string_view() : std::string_view(it->second);
}

std::string event_text(std::int64_t id, std::string_view type, std::string_view data) {
  std::string out;
  out.reserve(data.size() + type.size() + 48);
  if (id != 0) out.append("id: ").append(std::to_string(id)).append("\n");
  out.append("event: ").append(type).append("\n");
  for (std::size_t start = 0; start <= data.size();) {
    // A lone CR ends a line for an event-stream parser too.
    const auto end = std::min(data.find_first_of("\r\n", start), data.size());
    out.append("data: ").append(data.substr(start, end - start)).append("\n");
    start = end + (data.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  out.append("\n");
  return out;
}

std::size_t utf8_prefix(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || i + length > text.size()) return i;
    std::uint32_t code = lead & (0xffU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0U) != 0x80) return i;
      code = code << 6 | (next & 0x3fU);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return i;
    i += length;
  }
  return text.size();
}

}  // namespace kbench::http
