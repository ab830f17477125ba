// multipart/form-data (RFC 7578) from a body that is already in memory. Strict: nothing is guessed.
#include <algorithm>
#include <cctype>

#include "daemon/http/http.h"

namespace kbench::http {
namespace {

constexpr std::size_t kBoundaryBytesMax = 70;  // RFC 2046
constexpr std::size_t kPartHeaderBytesMax = 4096;

[[noreturn]] void refuse(const std::string& title, const std::string& detail, const std::string& field = "body") {
  throw Problem{400, "bad-multipart", title, detail, field};
}

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// `main; name=value; name="quoted"`: the parameters, names in lower case.
std::map<std::string, std::string> parameters(std::string_view text) {
  std::map<std::string, std::string> out;
  auto at = text.find(';');
  while (at < text.size()) {
    text = trimmed(text.substr(at + 1));
    if (text.empty()) break;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) refuse("a parameter without a value", "Write it as name=\"value\".");
    auto name = lowered(trimmed(text.substr(0, equals)));
    text.remove_prefix(equals + 1);
    std::string value;
    if (text.starts_with('"')) {
      std::size_t i = 1;
      for (; i < text.size() && text[i] != '"'; ++i) {
        // Only \" and \\ are escapes: some clients send a lone backslash as it is.
        if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
        value += text[i];
      }
      if (i >= text.size()) refuse("a quoted parameter that does not end", "Close the quotes of " + name + ".");
      text = trimmed(text.substr(i + 1));
      if (!text.empty() && text[0] != ';') refuse("text behind a quoted parameter", "Separate parameters with ;.");
      at = text.empty() ? std::string_view::npos : 0;
    } else {
      at = text.find(';');
      value = trimmed(text.substr(0, at));
    }
    if (!out.emplace(name, std::move(value)).second) refuse("parameter " + name + " given twice", "Give it once.");
  }
  return out;
}

Part part_from(std::string_view head, std::string_view content) {
  Part part;
  bool disposed = false;
  while (!head.empty()) {
    const auto end = head.find("\r\n");
    const auto line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 2);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) refuse("a part's header line without a colon", "Write it as Name: value.");
    const auto name = lowered(line.substr(0, colon));
    const auto value = trimmed(line.substr(colon + 1));
    if (name == "content-type") part.content_type = value;
    if (name == "content-transfer-encoding" && lowered(value) != "binary" && lowered(value) != "8bit") {
      refuse("a content transfer encoding", "Send the part's bytes as they are.");
    }
    if (name != "content-disposition") continue;
    if (disposed || !lowered(value).starts_with("form-data")) {
      refuse("a part's Content-Disposition", "Send one, of the form form-data; name=\"…\".");
    }
    disposed = true;
    auto given = parameters(value);
    if (given.count("filename*") != 0) refuse("filename*", "Send the name as filename=\"…\" in UTF-8.", "file");
    part.name = given["name"];
    part.filename = given["filename"];
  }
  if (part.name.empty()) refuse("a part without a name", "Send Content-Disposition: form-data; name=\"…\".");
  if (!valid_utf8(part.name) || !valid_utf8(part.filename)) {
    refuse("a part's name that is not UTF-8", "Send names in UTF-8.", "file");
  }
  part.content = content;
  return part;
}

}  // namespace

std::vector<Part> parse_multipart(std::string_view content_type, std::string_view body, std::size_t parts_max,
                                  std::string_view parts_option) {
  auto given = parameters(content_type);
  const auto& boundary = given["boundary"];
  if (boundary.empty() || boundary.size() > kBoundaryBytesMax) {
    refuse("the boundary is missing, or longer than 70 characters", "Name it in Content-Type: boundary=….",
           "Content-Type");
  }
  const std::string delimiter = "\r\n--" + boundary;
  std::vector<Part> parts;
  // The first delimiter may stand at the very start; a preamble before it is allowed and ignored.
  std::size_t at =
      body.starts_with(std::string_view(delimiter).substr(2)) ? delimiter.size() - 2 : body.find(delimiter);
  if (at == std::string_view::npos) refuse("no boundary in the body", "Start each part with --boundary.");
  if (!body.starts_with(std::string_view(delimiter).substr(2))) at += delimiter.size();
  while (true) {
    auto rest = body.substr(at);
    if (rest.starts_with("--")) return parts;
    if (!rest.starts_with("\r\n")) refuse("text behind a boundary", "End each boundary line with CRLF.");
    if (parts.size() == parts_max) {
      throw Problem{413, "too-many-parts", "more than " + std::to_string(parts_max) + " parts",
                    "Send at most " + limit_text(static_cast<std::int64_t>(parts_max), "parts", parts_option) + ".",
                    "body"};
    }
    rest.remove_prefix(2);
    const auto blank = rest.substr(0, kPartHeaderBytesMax).find("\r\n\r\n");
    if (blank == std::string_view::npos) refuse("a part's headers do not end", "Put an empty line before its content.");
    const auto end = rest.find(delimiter, blank + 2);  // + 2: an empty content lends its CRLF to the delimiter
    if (end == std::string_view::npos) refuse("the last boundary is missing", "End the body with --boundary--.");
    parts.push_back(part_from(rest.substr(0, blank), end < blank + 4 ? "" : rest.substr(blank + 4, end - blank - 4)));
    at += 2 + end + delimiter.size();
  }
}

}  // namespace kbench::http
