#include "daemon/engine/streams.h"

#include <algorithm>

namespace kbench::engine {

JsonSplitter::JsonSplitter(std::size_t bytes_max, std::function<void(std::string_view)> on_object)
    : bytes_max_(bytes_max), on_object_(std::move(on_object)) {}

void JsonSplitter::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (depth_ == 0) {
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
      if (c != '{') throw BadStream("something other than a JSON object in the stream");
    }
    if (object_.size() == bytes_max_)
      throw BadStream("a JSON object of more than " + std::to_string(bytes_max_) + " bytes");
    object_.push_back(c);
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      continue;
    }
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{') {
      ++depth_;
    } else if (c == '}' && --depth_ == 0) {
      on_object_(object_);
      object_.clear();
    }
  }
}

LogDemuxer::LogDemuxer(std::size_t frame_bytes_max, std::function<void(Source, std::string_view)> on_data)
    : frame_bytes_max_(frame_bytes_max), on_data_(std::move(on_data)) {}

void LogDemuxer::feed(std::string_view bytes) {
  constexpr std::size_t kHeaderBytes = 8;
  while (!bytes.empty()) {
    if (left_ > 0) {
      const std::string_view piece = bytes.substr(0, left_);
      on_data_(source_, piece);
      left_ -= piece.size();
      bytes.remove_prefix(piece.size());
      continue;
    }
    const std::size_t wanted = std::min(kHeaderBytes - header_.size(), bytes.size());
    header_.append(bytes.substr(0, wanted));
    bytes.remove_prefix(wanted);
    if (header_.size() < kHeaderBytes) return;
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(header_[i])); };
    if (byte(0) > 3 || byte(1) || byte(2) || byte(3)) throw BadStream("a log frame of an unknown kind");
    source_ = static_cast<Source>(byte(0));
    left_ = byte(4) << 24 | byte(5) << 16 | byte(6) << 8 | byte(7);
    if (left_ > frame_bytes_max_) throw BadStream("a log frame of " + std::to_string(left_) + " bytes");
    header_.clear();
  }
}

namespace {

// Length of the UTF-8 sequence at the beginning of `text`, 0 when it is none (overlong, surrogate, cut, above
// U+10FFFF).
std::size_t sequence_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned char lead = static_cast<unsigned char>(byte(0));
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!follows(1) || !follows(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    return lead == 0xed && byte(1) > 0x9f ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    return lead == 0xf4 && byte(1) > 0x8f ? 0 : 4;
  }
  return 0;
}

// Length of the terminal escape at the beginning of `text`, which starts with ESC.
std::size_t escape_at(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {  // parameters and intermediates, then one final byte
    std::size_t i = 2;
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f) ++i;
    return std::min(i + 1, text.size());
  }
  if (text[1] == ']' || text[1] == 'P' || text[1] == '_' ||
      text[1] == '^') {  // a string, ended by BEL or ESC backslash
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b') return std::min(i + 2, text.size());
      if (text[i] == '\n') return i;
    }
    return text.size();
  }
  return 2;
}

}  // namespace

std::string sanitised(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text.front() == '\x1b') {
      text.remove_prefix(escape_at(text));
      continue;
    }
    const std::size_t length = sequence_at(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD
      text.remove_prefix(1);
      continue;
    }
    const unsigned char first = static_cast<unsigned char>(text.front());
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const bool control = (length == 1 && (first < 0x20 || first == 0x7f) && first != '\n' && first != '\t') || c1;
    if (!control) out.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

void TailText::add(std::string_view bytes) {
  if (bytes.size() > bytes_max_) {
    bytes.remove_prefix(bytes.size() - bytes_max_);
    cut_ = true;
  }
  kept_.append(bytes);
  // Cut in halves of the limit, so that a flood costs a constant per byte.
  if (kept_.size() > 2 * bytes_max_) {
    kept_.erase(0, kept_.size() - bytes_max_);
    cut_ = true;
  }
}

std::string TailText::text() const {
  std::string_view kept = kept_;
  bool cut = cut_;
  if (kept.size() > bytes_max_) {
    kept.remove_prefix(kept.size() - bytes_max_);
    cut = true;
  }
  return (cut ? "[the beginning was cut]\n" : "") + sanitised(kept);
}

}  // namespace kbench::engine
