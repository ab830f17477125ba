#include "daemon/http/target.h"

#include "daemon/http/http.h"

namespace kbench::http {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[noreturn]] void refuse(const std::string& title, const std::string& detail, const std::string& field) {
  throw Problem{400, "bad-target", title, detail, field};
}

std::string percent_decoded(std::string_view text, bool plus_is_space, const std::string& field) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex(text[i + 2]) : -1;
      if (high < 0 || low < 0) refuse("a % that no two hex digits follow", "Send a literal % as %25.", field);
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  for (const char c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      refuse("a control character in the request target", "Leave it out.", field);
    }
  }
  if (!valid_utf8(out)) refuse("the request target is not UTF-8", "Send UTF-8, percent-encoded.", field);
  return out;
}

// What is between separators; nothing for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) parts.push_back(text);
  }
  return parts;
}

}  // namespace

Target decode_target(std::string_view target) {
  if (target.starts_with("http://") || target.starts_with("https://")) {
    const auto path = target.find('/', target.find("//") + 2);
    target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  target = target.substr(0, target.find('#'));
  const auto question = target.find('?');
  std::string_view path = target.substr(0, question);
  if (!path.starts_with('/')) refuse("the request target is not a path", "Start it with /.", "path");

  Target out;
  for (const auto raw : split(path.substr(1), '/')) {
    auto segment = percent_decoded(raw, false, "path");
    if (segment.empty() || segment == "." || segment == ".." || segment.find('/') != std::string::npos) {
      refuse("an empty, . or .. step, or an encoded slash, in the path", "Send the plain path of the resource.",
             "path");
    }
    out.segments.push_back(std::move(segment));
  }
  if (question == std::string_view::npos) return out;
  for (const auto pair : split(target.substr(question + 1), '&')) {
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    auto name = percent_decoded(pair.substr(0, equals), true, "query");
    auto value =
        equals == std::string_view::npos ? std::string() : percent_decoded(pair.substr(equals + 1), true, name);
    if (!out.query.emplace(name, std::move(value)).second) refuse("query parameter given twice", "Give it once.", name);
  }
  return out;
}

}  // namespace kbench::http
