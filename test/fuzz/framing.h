// Where HTTP messages begin and end, read as RFC 9112 has it and not one step beyond: what is doubtful ends the
// reading. Written apart from the server's own, which is measured by it.
#pragma once

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/fuzz/fuzz.h"

namespace kbench::fuzz {

struct Framed {
  std::string method, target, body;
  bool head_only() const { return method == "HEAD"; }
};

struct Answer {
  int status = 0;
  bool closes = false;
  std::string body;
};

inline std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// Up to the line's end, which is taken too. Nothing: no CRLF, or a CR or LF before it.
inline std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find_first_of("\r\n");
  if (end == text.npos || text.substr(end, 2) != "\r\n") return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

using Fields = std::vector<std::pair<std::string, std::string>>;  // names in lower case, values without blanks around

// Up to and with the empty line.
inline std::optional<Fields> take_fields(std::string_view& text) {
  Fields fields;
  while (const auto line = take_line(text)) {
    if (line->empty()) return fields;
    const std::size_t colon = line->find(':');
    if (colon == line->npos || colon == 0) return std::nullopt;
    const std::string name = lower(line->substr(0, colon));
    const auto of_token = [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
    };
    if (!std::all_of(name.begin(), name.end(), of_token)) return std::nullopt;
    std::string_view value = line->substr(colon + 1);
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!value.empty() && blank(value.front())) value.remove_prefix(1);
    while (!value.empty() && blank(value.back())) value.remove_suffix(1);
    fields.emplace_back(name, value);
  }
  return std::nullopt;
}

// The one value of a field; "" where there is none. Nothing: there are several.
inline std::optional<std::string> only(const Fields& fields, std::string_view name) {
  std::optional<std::string> found;
  for (const auto& [each, value] : fields) {
    if (each != name) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found.value_or("");
}

inline bool has(const Fields& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
}

inline std::optional<std::size_t> number_in(std::string_view digits, unsigned base) {
  if (digits.empty() || digits.size() > 12) return std::nullopt;
  std::size_t value = 0;
  for (const char c : digits) {
    const std::size_t digit =
        std::string_view("0123456789abcdef").find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    if (digit >= base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

inline std::optional<std::string> take_chunks(std::string_view& text) {
  std::string body;
  while (const auto line = take_line(text)) {
    const auto length = number_in(line->substr(0, line->find_first_of("; \t")), 16);
    if (!length) return std::nullopt;
    if (*length == 0) return take_fields(text) ? std::optional(body) : std::nullopt;
    if (text.size() < *length + 2 || text.substr(*length, 2) != "\r\n") return std::nullopt;
    body += text.substr(0, *length);
    text.remove_prefix(*length + 2);
  }
  return std::nullopt;
}

inline std::optional<Framed> take_request(std::string_view& text) {
  const auto line = take_line(text);
  if (!line) return std::nullopt;
  const std::size_t first = line->find(' '), last = line->rfind(' ');
  if (first == line->npos || first == last) return std::nullopt;
  const std::string_view version = line->substr(last + 1);
  Framed request{std::string(line->substr(0, first)), std::string(line->substr(first + 1, last - first - 1)), {}};
  if (version != "HTTP/1.0" && version != "HTTP/1.1") return std::nullopt;
  if (request.method.empty() || request.target.find(' ') != std::string::npos) return std::nullopt;
  const auto fields = take_fields(text);
  if (!fields) return std::nullopt;
  const auto coding = only(*fields, "transfer-encoding"), length = only(*fields, "content-length"),
             host = only(*fields, "host");
  if (!coding || !length || !host || (version == "HTTP/1.1" && !has(*fields, "host"))) return std::nullopt;
  if (has(*fields, "transfer-encoding")) {
    if (lower(*coding) != "chunked" || has(*fields, "content-length") || version == "HTTP/1.0") return std::nullopt;
    auto body = take_chunks(text);
    if (!body) return std::nullopt;
    request.body = *std::move(body);
  } else if (has(*fields, "content-length")) {
    const auto bytes = number_in(*length, 10);
    if (!bytes || text.size() < *bytes) return std::nullopt;
    request.body = text.substr(0, *bytes);
    text.remove_prefix(*bytes);
  }
  return request;
}

// The whole requests that the bytes begin with.
inline std::vector<Framed> framed(std::string_view bytes) {
  std::vector<Framed> requests;
  while (!bytes.empty()) {
    auto request = take_request(bytes);
    if (!request) break;
    requests.push_back(*std::move(request));
  }
  return requests;
}

// The answers to those requests, and one more to what is none; each whole. Those to come (100) are left out.
inline std::vector<Answer> answers_in(std::string_view bytes, const std::vector<Framed>& requests) {
  std::vector<Answer> answers;
  std::size_t to_come = 0;
  while (!bytes.empty()) {
    const auto line = take_line(bytes);
    require(line && line->starts_with("HTTP/1.1 ") && line->size() > 13 && (*line)[12] == ' ', "a status line");
    Answer answer;
    answer.status = static_cast<int>(number_in(line->substr(9, 3), 10).value_or(0));
    const auto fields = take_fields(bytes);
    require(fields.has_value(), "a whole head");
    if (answer.status == 100) {
      require(++to_come <= requests.size() + 1, "one 100 a request");
      continue;
    }
    const auto length = number_in(only(*fields, "content-length").value_or(""), 10);
    require(length.has_value(), "one Content-Length");
    answer.closes = lower(only(*fields, "connection").value_or("")) == "close";
    // To a HEAD that is none, with a body or without: it was understood so far, or not.
    const bool known = answers.size() < requests.size();
    if (known ? !requests[answers.size()].head_only() : !bytes.empty()) {
      require(bytes.size() >= *length, "a whole answer");
      answer.body = bytes.substr(0, *length);
      bytes.remove_prefix(*length);
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace kbench::fuzz
