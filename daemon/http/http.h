// An HTTP/1.1 server that knows no resource: listener, router, limits, problem+json, server-sent events.
//
// Handlers run on a pool of threads and may block; connections are served by a few I/O threads, so an idle or slow client costs a
// socket and a few kilobytes, never a thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbench::http {

struct Limits {                                     // each in the config reference
  std::size_t header_bytes_max = 16 * 1024;
  std::size_t body_bytes_max = 16 * 1024 * 1024;
  int connections_max = 12'000;
  int streams_max = 2'000;                          // open event streams
  std::chrono::seconds idle_timeout{75}, request_timeout{30}, stream_heartbeat{15};
  int io_threads = 2, handler_threads = 16;
};

struct Request {
  std::string method, path, target;                 // path decoded; target as sent
  std::map<std::string, std::string> query;         // decoded; a name given twice is a 400 before any handler
  std::map<std::string, std::string> path_values;   // {id} of the route
  std::string body;
  std::string submitter;                            // whom the token belongs to
  std::string_view header(std::string_view name) const;   // case-insensitive; empty when absent
  std::map<std::string, std::string> headers;             // names in lower case
};

// RFC 9457. `title` says what is wrong, `detail` how to mend it, `field` which field it is about.
struct Problem {
  int status; std::string type, title, detail, field;
  int retry_after_s = 0;
};

// Server-sent events: `pull` returns the text to send now (whole events) and whether the stream ends with it; it is called again after
// `wake`, or after the heartbeat. `wake` is filled by the server.
struct Stream {
  std::function<std::pair<std::string, bool>()> pull;
  std::function<void(std::function<void()> wake)> attach;   // called once; keep `wake`, call it from any thread, also after the end
};

struct Response {
  int status = 200;
  std::string content_type = "application/json", body;
  std::map<std::string, std::string> headers;
  std::optional<Stream> stream;
};
Response problem(const Problem& problem);           // also what a thrown Problem becomes

enum class Access : std::uint8_t { open, token };

class Server {
 public:
  static std::unique_ptr<Server> create(const Limits& limits);
  virtual ~Server() = default;
  // "/api/v1/submissions/{id}". Another method on a known path is a 405 with Allow.
  virtual void route(std::string method, std::string pattern, Access access, std::function<Response(const Request&)> handler) = 0;
  // token -> submitter; nullopt refuses with a 401. Constant time in the token.
  virtual void authenticate(std::function<std::optional<std::string>(std::string_view token)> check) = 0;
  virtual std::uint16_t listen(const std::string& address, std::uint16_t port) = 0;   // 0 picks one; returns it. Throws with the reason.
  virtual void stop() = 0;                          // no new connection; running requests end; streams are closed
};

}  // namespace kbench::http
