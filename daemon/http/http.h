// An HTTP/1.1 server that knows no resource: listener, router, limits, problem+json, server-sent events.
//
// Handlers run on a pool of threads and may block; connections are served by a few I/O threads, so an idle or slow
// client costs a socket and a few kilobytes, never a thread.
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

struct Limits {  // each in the config reference
  std::size_t header_bytes_max = 16 * 1024;
  int header_fields_max = 100;
  std::size_t body_bytes_max = 16 * 1024 * 1024;
  std::size_t bodies_bytes_max = 256 * 1024 * 1024;   // of all requests being received or handled; past it 503
  std::size_t answers_bytes_max = 256 * 1024 * 1024;  // of all large answers being taken; past it 503
  int connections_max = 12'000;                       // past it the one idle longest gives way; 503 when none is idle
  int waiting_max = 4'000;                            // requests waiting for a thread of the pool; past it 503
  int streams_max = 2'000;                            // open event streams
  std::chrono::milliseconds idle_timeout{75'000};     // between two requests of a connection
  std::chrono::milliseconds request_timeout{
      30'000};  // from a request's first byte to its last; and for the client to take the answer
  std::chrono::milliseconds acknowledge_timeout{60'000};  // a peer that acknowledges nothing for so long is gone
  std::chrono::milliseconds stream_heartbeat{15'000};
  std::chrono::milliseconds stop_grace{3'000};  // stop() lets running requests end for so long
  int io_threads = 2, handler_threads = 16;     // and as many as io_threads for quick handlers
};

struct Request {
  std::string method, path, target;                // path decoded; target as sent
  std::map<std::string, std::string> query;        // decoded; a name given twice is a 400 before any handler
  std::map<std::string, std::string> path_values;  // {id} of the route
  std::string body;
  std::string submitter;                                 // whom the token belongs to
  std::string_view header(std::string_view name) const;  // case-insensitive; empty when absent
  std::map<std::string, std::string> headers;            // names in lower case
};

// RFC 9457. `type` is a short stable code ("unknown-task", sent as "urn:kbench:unknown-task"), `title` says what is
// wrong, `detail` how to mend it, `field` which field it is about. With several faults the first is repeated in title,
// detail and field.
struct Fault {
  std::string field, title, detail;
};
struct Problem {
  int status = 500;
  std::string type = {}, title = {}, detail = {}, field = {};
  int retry_after_s = 0;
  std::vector<Fault> errors = {};
};

// Server-sent events: `pull` returns the text to send now (whole events, a bounded piece) and whether the stream ends
// with it. It runs on the pool and is called again until it returns nothing, then after `wake` and after each
// heartbeat. `wake` is filled by the server. Both functions are destroyed when the stream ends, for whatever reason.
struct Stream {
  std::function<std::pair<std::string, bool>()> pull;
  std::function<void(std::function<void()> wake)>
      attach;  // called once; keep `wake`, call it from any thread, also after the end
};

struct Response {
  int status = 200;
  std::string content_type = "application/json", body;
  std::map<std::string, std::string> headers;
  std::optional<Stream> stream;
};
Response problem(const Problem& problem);  // also what a thrown Problem becomes
// "16384 bytes (http.header_bytes_max)": a limit as a refusal names it, so that an operator finds what to set.
std::string limit_text(std::int64_t value, std::string_view unit, std::string_view option);

// One event of a stream as text; `id` 0 sends none. `data` may have several lines, `type` must be one word.
std::string event_text(std::int64_t id, std::string_view type, std::string_view data);

// A multipart/form-data body. Throws Problem (400) that names what is malformed; more than `parts_max` parts is a 413,
// which says that they come from `parts_option`.
struct Part {
  std::string name, filename, content_type, content;
};
std::vector<Part> parse_multipart(std::string_view content_type, std::string_view body, std::size_t parts_max,
                                  std::string_view parts_option);

std::size_t utf8_prefix(std::string_view text);  // where UTF-8 ends: no overlong forms, surrogates, past U+10FFFF
inline bool valid_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

enum class Access : std::uint8_t { open, token };
using Handler = std::function<Response(const Request&)>;
// quick: takes microseconds and waits for nothing. Such handlers share few threads, which saves half of a small
// request's cost (a pool that wakes a thread for each request mostly switches between them) and keeps them from
// queueing behind slow ones. A slow handler is not run for a client who has closed its side meanwhile.
enum class Work : std::uint8_t { slow, quick };

class Server {
 public:
  static std::unique_ptr<Server> create(const Limits& limits);
  virtual ~Server() = default;
  // "/api/v1/submissions/{id}". Another method on a known path is a 405 with Allow.
  // HEAD follows GET. All routes are given before listen().
  virtual void route(std::string method, std::string pattern, Access access, Handler handler,
                     Work work = Work::slow) = 0;
  // token -> submitter; nullopt refuses with a 401. Constant time in the token. Runs on an I/O thread. Not given: no
  // token is asked for.
  virtual void authenticate(std::function<std::optional<std::string>(std::string_view token)> check) = 0;
  virtual std::uint16_t listen(const std::string& address,
                               std::uint16_t port) = 0;  // 0 picks one; returns it. Throws with the reason.
  virtual void stop() = 0;                               // no new connection; running requests end; streams are closed
};

}  // namespace kbench::http
