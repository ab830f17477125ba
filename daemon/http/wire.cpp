#include "daemon/http/wire.h"

#include <array>
#include <ctime>
#include <stdexcept>

namespace kbench::http {
namespace {

// "Sun, 06 Nov 1994 08:49:37 GMT", made once a second and thread.
const std::string& date() {
  thread_local std::time_t made = 0;
  thread_local std::string text;
  const auto now = std::time(nullptr);
  if (now != made) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 40> out{};
    std::strftime(out.data(), out.size(), "%a, %d %b %Y %H:%M:%S GMT",
                  &utc);  // the C locale's names: nobody calls setlocale
    text = out.data();
    made = now;
  }
  return text;
}

void add(std::string& head, std::string_view name, std::string_view value) {
  if (value.find_first_of("\r\n") != std::string_view::npos) {
    throw std::logic_error("line break in header " + std::string(name));
  }
  head.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unnamed";
  }
}

std::string head_of(const Response& response, const Manner& manner) {
  std::string head;
  head.reserve(256);
  head.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  head.append(reason_of(response.status)).append("\r\n");
  add(head, "Date", date());
  const bool bodiless = response.status == 204 || response.status == 304;
  if (!bodiless) {
    add(head, "Content-Type", response.content_type);
    if (manner.framing == Framing::length) add(head, "Content-Length", std::to_string(response.body.size()));
    if (manner.framing == Framing::chunked) add(head, "Transfer-Encoding", "chunked");
  }
  add(head, "X-Content-Type-Options", "nosniff");
  if (response.headers.count("Cache-Control") == 0) add(head, "Cache-Control", "no-store");
  for (const auto& [name, value] : response.headers) add(head, name, value);
  if (!manner.keep_alive) {
    add(head, "Connection", "close");
  } else if (manner.http10) {
    add(head, "Connection", "keep-alive");
  }
  return head.append("\r\n");
}

std::string chunk_of(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (auto left = text.size(); left != 0; left /= 16) size.insert(size.begin(), kDigits[left % 16]);
  std::string out;
  out.reserve(text.size() + 24);
  return out.append(size).append("\r\n").append(text).append("\r\n");
}

}  // namespace kbench::http
