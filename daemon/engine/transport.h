// One HTTP exchange over a unix socket; the only place that knows libcurl. Internal to daemon/engine.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "daemon/engine/engine.h"

namespace kbench::engine {

struct HttpRequest {
  std::string method, path;  // path with its query, encoded
  std::string_view body;     // must outlive the call
  std::string content_type;
  milliseconds timeout{0};  // 0: none
  std::size_t reply_bytes_max = 16u << 20;
  std::function<void()> on_accepted;              // once, when the headers of a 2xx have come
  std::function<void(std::string_view)> on_body;  // body of a 2xx as it comes; without it the body is kept
  std::stop_token stop;
};

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Throws EngineError unreachable, timeout or cancelled; a status is no error here. An exception of a callback comes out
// as it is.
HttpReply exchange(const std::string& socket, milliseconds connect_timeout, const HttpRequest& request);

std::string url_encoded(std::string_view text);

}  // namespace kbench::engine
