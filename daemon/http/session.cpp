// One connection: requests in, answers and event streams out. The only file that knows Beast.
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/beast/http.hpp>
#include <cerrno>

#include "daemon/http/server_impl.h"
#include "daemon/http/target.h"
#include "daemon/http/wire.h"

namespace kbench::http {

struct Parser : beast::http::request_parser<beast::http::string_body> {};

namespace {

// How a stream is woken from any thread, even after its connection, its server or its I/O thread have gone.
struct Waker {
  std::mutex mutex;
  std::weak_ptr<Connection> connection;
  Shard* shard;  // null after the end
  std::atomic<bool> woken{false};
};

void wake(const std::shared_ptr<Waker>& waker) {
  if (waker->woken.exchange(true)) return;
  const std::scoped_lock lock(waker->mutex);
  if (waker->shard == nullptr) return;
  asio::post(waker->shard->io, [weak = waker->connection] {
    if (const auto connection = weak.lock()) connection->alarm.cancel();
  });
}

std::string bytes_text(std::size_t value, std::string_view option) {
  return limit_text(static_cast<std::int64_t>(value), "bytes", option);
}

Response malformed(error_code why, const Limits& limits) {
  using E = beast::http::error;
  if (why == E::header_limit)
    return problem({431, "header-too-large", "the request's header is too large",
                    "Send at most " + bytes_text(limits.header_bytes_max, "http.header_bytes_max") + " and " +
                        limit_text(limits.header_fields_max, "fields", "http.header_fields_max") + ".",
                    "header"});
  if (why == E::buffer_overflow)
    return problem({400, "malformed-http", "a chunk's extensions or a trailer are too large", "Send none.", "body"});
  if (why == E::body_limit)
    return problem({413, "body-too-large", "the request's body is too large",
                    "Send at most " + bytes_text(limits.body_bytes_max, "http.body_bytes_max") + ".", "body"});
  if (why == E::bad_version)
    return problem({505, "bad-version", "not HTTP/1.0 or HTTP/1.1", "Speak HTTP/1.1.", "header"});
  return problem(
      {400, "malformed-http", "malformed HTTP: " + why.message(), "Send a request as RFC 9112 has it.", "header"});
}

// What decides where a body ends must be said once and in one way, else a proxy before us may see another request than
// we do.
void check_framing(const Parser& parser) {
  namespace h = beast::http;
  const auto& message = parser.get();
  const auto refuse = [](const char* title, const char* field) {
    throw Problem{400, "malformed-http", title, "Send it once, as RFC 9112 has it.", field};
  };
  if (message.version() != 10 && message.version() != 11)
    throw Problem{505, "bad-version", "not HTTP/1.0 or HTTP/1.1", "Speak HTTP/1.1.", ""};
  const auto encodings = message.count(h::field::transfer_encoding), lengths = message.count(h::field::content_length);
  if (encodings > 1 || lengths > 1) refuse("the body's framing is given twice", "Content-Length");
  const auto length = message[h::field::content_length];
  if (std::any_of(length.begin(), length.end(), [](char d) { return d < '0' || d > '9'; })) {
    refuse("Content-Length is not a number", "Content-Length");  // "4, 4" has two readings
  }
  if (encodings != 0 && lengths != 0) refuse("both Transfer-Encoding and Content-Length", "Content-Length");
  if (encodings != 0 && !beast::iequals(message[h::field::transfer_encoding], "chunked")) {
    refuse("a Transfer-Encoding other than chunked", "Transfer-Encoding");
  }
  if (encodings != 0 && message.version() == 10) refuse("Transfer-Encoding in HTTP/1.0", "Transfer-Encoding");
  const auto hosts = message.count(h::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() == 11)) refuse("not exactly one Host header", "Host");
  const auto expect = message[h::field::expect];
  if (!expect.empty() && !beast::iequals(expect, "100-continue")) {
    throw Problem{417, "bad-expectation", "an unknown Expect", "Send Expect: 100-continue or none.", "Expect"};
  }
}

// A header that goes on in the next line. Obsolete (RFC 9112, 5.2), and read differently by those who still take it.
bool has_fold(std::string_view header) {
  return header.find("\r\n ") != header.npos || header.find("\r\n\t") != header.npos;
}

Response folded_header() {
  return problem({400, "malformed-http", "a header that goes on in the next line", "Send it in one line.", "header"});
}

// Line ends of a header, up to the empty line behind it. `begun`: its first lines were taken from `bytes` before.
std::size_t header_lines(std::string_view bytes, bool begun) {
  if (begun && bytes.starts_with("\r\n")) return 0;
  const auto end = bytes.find("\r\n\r\n");
  const auto header = bytes.substr(0, end == bytes.npos ? end : end + 2);
  return static_cast<std::size_t>(std::count(header.begin(), header.end(), '\n'));
}

// Beast takes any byte in the quoted text of a chunk's extension; one who ends lines at a bare LF sees other chunks.
void check_extensions(std::uint64_t, beast::string_view extensions, error_code& ec) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; };
  if (std::any_of(extensions.begin(), extensions.end(), control)) ec = beast::http::error::bad_chunk_extension;
}

bool is_http(error_code ec) { return ec.category() == make_error_code(beast::http::error::bad_method).category(); }

// What to answer when reading failed; nothing when the peer has gone or was idle.
std::optional<Response> faulted(error_code ec, const Connection& c, Incoming& in, const Limits& limits) {
  using E = beast::http::error;
  const bool left = ec == E::end_of_stream || ec == E::partial_message;
  in.heard = !left && (c.expired || is_http(ec));
  in.keep_alive = false;
  if (!in.heard) return std::nullopt;
  if (!c.expired) return malformed(ec, limits);
  return problem({408, "too-slow", "the request did not arrive in time",
                  "Send it within " + limit_text(limits.request_timeout.count(), "ms", "http.request_timeout") + ".",
                  ""});
}

// Whether the peer has closed its side. From any thread, while nothing else is done with the socket.
bool has_left(Socket& socket) {
  char next = 0;
  const auto got = ::recv(socket.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

// False when it threw.
bool pull(const Stream& stream, std::pair<std::string, bool>& pulled) {
  try {
    pulled = stream.pull();
    return true;
  } catch (const std::exception& e) {
    spdlog::error("http: event stream ended: {}", e.what());
    return false;
  }
}

}  // namespace

// One request and its answer; false when the connection ends with it.
Task<bool> AsioServer::serve_one(Shard& shard, std::shared_ptr<Connection> connection) {
  auto& c = *connection;
  Incoming in;
  Share<std::size_t> bodies{bodies_bytes_}, answers{answers_bytes_};
  Share<int> streams{streams_};
  auto answer = co_await receive(c, in, bodies);
  if (!in.heard) co_return false;
  const bool refused = answer.has_value();
  if (!answer) answer = co_await handle(c, in, answers);
  if (!answer) co_return false;
  in.request.body = std::string();
  bodies.release();
  if (answer->stream && !in.head_only) {
    if (streams.grow(1, limits_.streams_max)) {
      co_await stream(shard, connection, *answer, in.http10);
      co_return false;
    }
    answer = problem({503, "too-many-streams", "too many open event streams",
                      "Close some, or poll the resource. There may be " +
                          limit_text(limits_.streams_max, "streams", "http.streams_max") + " at a time.",
                      "", 5});
  }
  Manner manner;
  manner.keep_alive = in.keep_alive && !stopping_;
  manner.http10 = in.http10;
  const auto head = head_of(*answer, manner);
  const std::string_view body = in.head_only ? std::string_view() : std::string_view(answer->body);
  if (!co_await send(c, head, body)) co_return false;
  if (!manner.keep_alive && refused) co_await linger(c);
  co_return manner.keep_alive;
}

Task<std::optional<Response>> AsioServer::receive(Connection& c, Incoming& in, Share<std::size_t>& bodies) {
  if (c.buffer.size() == 0) {
    // An idle connection holds no buffer and no parser.
    if (c.buffer.capacity() > kIdleBufferBytesMax) c.buffer = beast::flat_buffer();
    c.idle = true;
    c.expired = false;
    c.deadline = Clock::now() + limits_.idle_timeout;
    if (stopping_) co_return std::nullopt;
    IdleLine::Place place(idle_, c);
    auto [ec] = co_await c.socket.async_wait(Socket::wait_read, kTry);
    if (!place.leave() || ec || c.expired || stopping_) co_return std::nullopt;
  }
  c.idle = false;
  c.expired = false;
  c.deadline = Clock::now() + limits_.request_timeout;
  // Beast bounds a header, but neither a chunk's extensions nor a trailer: what it cannot take yet must fit here.
  c.buffer.max_size(limits_.header_bytes_max + kReadBytesMax);
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes_max));
  parser.body_limit(limits_.body_bytes_max);
  parser.on_chunk_header(check_extensions);
  bool folded = false;
  const error_code ec = co_await receive_header(c, parser, folded);
  if (ec || c.expired) co_return faulted(ec, c, in, limits_);
  in.heard = true;
  auto refusal = folded ? folded_header() : admit(parser, in);
  if (refusal) co_return refusal;
  co_return co_await receive_body(c, parser, in, bodies);
}

// As beast::http::async_read_header, but for three things: it looks at the bytes before they are unfolded, bounds the
// whole header, and how many fields it has. Beast takes each field as it comes and bounds only what it has not taken
// yet, so that a client who sends a few fields at a time could go on for ever; and a field of four bytes costs it
// eighty.
Task<error_code> AsioServer::receive_header(Connection& c, Parser& parser, bool& folded) {
  const auto lines_max = static_cast<std::size_t>(limits_.header_fields_max) + 1;  // with the request's own
  std::size_t taken = 0, lines = 0;
  while (true) {
    if (c.buffer.size() != 0) {
      error_code ec;
      const auto bytes = c.buffer.data();
      const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
      if (lines + header_lines(text, taken != 0) > lines_max) co_return beast::http::error::header_limit;
      const auto used = parser.put(bytes, ec);
      folded = folded || has_fold(text.substr(0, used));
      lines +=
          static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(used), '\n'));
      c.buffer.consume(used);
      taken += used;
      const bool done = ec != beast::http::error::need_more;
      if (taken + (done ? 0 : c.buffer.size()) > limits_.header_bytes_max) ec = beast::http::error::header_limit;
      if (done || ec == beast::http::error::header_limit) co_return ec;
    }
    const auto room = beast::read_size(c.buffer, kReadBytesMax);
    if (room == 0) co_return beast::http::error::buffer_overflow;
    auto [ec, got] = co_await c.socket.async_read_some(c.buffer.prepare(room), kTry);
    if (ec) co_return ec == asio::error::eof ? make_error_code(beast::http::error::end_of_stream) : ec;
    // While so much comes from so many that there are always bytes to take, no sweep finds a read that it could cancel.
    if (c.expired) co_return make_error_code(asio::error::timed_out);
    c.buffer.commit(got);
  }
}

Task<std::optional<Response>> AsioServer::receive_body(Connection& c, Parser& parser, Incoming& in,
                                                       Share<std::size_t>& bodies) {
  if (!parser.is_done() && !in.http10 && !in.request.header("expect").empty()) {
    const std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    auto [ec, bytes] = co_await asio::async_write(c.socket, asio::buffer(go_on), kTry);
    if (ec || c.expired) co_return faulted(ec, c, in, limits_);
  }
  while (!parser.is_done()) {
    auto [ec, bytes] = co_await beast::http::async_read_some(c.socket, c.buffer, parser, kTry);
    if (ec || c.expired) co_return faulted(ec, c, in, limits_);
    if (!bodies.grow(parser.get().body().size() - bodies.amount, limits_.bodies_bytes_max)) {
      co_return problem(
          {503, "too-many-bodies", "too many large requests at once",
           "Come back. All together may have " + bytes_text(limits_.bodies_bytes_max, "http.bodies_bytes_max") + ".",
           "", 5});
    }
  }
  in.keep_alive = parser.keep_alive();
  in.request.body = std::move(parser.get().body());
  co_return std::nullopt;
}

// All that is decided before the body is read: it is not read for a stranger, nor for a resource that is not there.
std::optional<Response> AsioServer::admit(const Parser& parser, Incoming& in) try {
  const auto& message = parser.get();
  in.http10 = message.version() == 10;
  in.head_only = message.method() == beast::http::verb::head;
  check_framing(parser);
  in.keep_alive = parser.is_done() && parser.keep_alive();  // an unread body ends the connection
  auto& request = in.request;
  request.method = message.method_string();
  request.target = message.target();
  auto target = decode_target(request.target);
  auto match = router_.find(request.method, target.segments);
  if (match.route == nullptr && match.allow.empty()) {
    return problem({404, "no-such-path", "nothing at this path", "See docs/api.md for the paths there are.", "path"});
  }
  if (match.route == nullptr) {
    auto refusal =
        problem({405, "bad-method", request.method + " is not for this path", "Use " + match.allow + ".", "method"});
    refusal.headers["Allow"] = match.allow;
    return refusal;
  }
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (auto& letter : name) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
    auto [it, fresh] = request.headers.emplace(std::move(name), std::string(field.value()));
    if (!fresh) it->second.append(", ").append(field.value());
  }
  if (match.route->access == Access::token && check_) {
    const auto given = request.header("authorization");
    const bool bearer = given.size() > 7 && beast::iequals(std::string(given.substr(0, 7)), "bearer ");
    auto submitter = check_(bearer ? given.substr(7) : std::string_view());
    if (!submitter) {
      auto refusal = problem({401, "no-token", "no token, or one that is not known here",
                              "Send Authorization: Bearer TOKEN; the server's token file holds it.", "Authorization"});
      refusal.headers["WWW-Authenticate"] = "Bearer";
      return refusal;
    }
    request.submitter = *std::move(submitter);
  }
  // Undone here it would need a limit of its own; taken as it is it would be read as something else.
  if (const auto coding = request.header("content-encoding");
      !parser.is_done() && !coding.empty() && !beast::iequals(coding, "identity")) {
    auto refusal = problem({415, "bad-content-encoding", "a body in a Content-Encoding",
                            "Send the body as it is, without the header Content-Encoding.", "Content-Encoding"});
    refusal.headers["Accept-Encoding"] = "identity";  // RFC 9110, 12.5.3
    return refusal;
  }
  for (const auto& segment : target.segments) request.path.append("/").append(segment);
  if (request.path.empty()) request.path = "/";
  request.query = std::move(target.query);
  request.path_values = std::move(match.path_values);
  in.route = match.route;
  return std::nullopt;
} catch (const Problem& fault) {
  return problem(fault);
}

Task<std::optional<Response>> AsioServer::handle(Connection& c, const Incoming& in, Share<std::size_t>& answers) {
  const bool quick = in.route->work == Work::quick;
  Share<int> waiting{waiting_};
  if (!quick && !waiting.grow(1, limits_.waiting_max)) {
    co_return problem(
        {503, "too-busy", "too many requests wait to be handled",
         "Come back. There may be " + limit_text(limits_.waiting_max, "requests", "http.waiting_max") + " at a time.",
         "", 5});
  }
  c.deadline = kNever;
  auto& pool = quick ? quick_ : pool_;
  co_await asio::post(asio::bind_executor(pool.get_executor(), kAwait));
  waiting.release();
  std::optional<Response> answer;
  if (quick || !has_left(c.socket)) answer = handled(in, answers);
  co_await asio::post(c.socket.get_executor(), kAwait);
  co_return answer;
}

Response AsioServer::handled(const Incoming& in, Share<std::size_t>& answers) {
  try {
    auto answer = in.route->handler(in.request);
    const auto bytes = answer.body.size();
    if (bytes <= kSmallAnswerBytes || answers.grow(bytes, limits_.answers_bytes_max)) return answer;
    throw Problem{
        503,
        "too-many-answers",
        "too many large answers are being taken",
        "Come back. All together may have " + bytes_text(limits_.answers_bytes_max, "http.answers_bytes_max") + ".",
        "",
        5};
  } catch (const Problem& fault) {
    return problem(fault);
  } catch (const std::exception& e) {
    spdlog::error("http: {} {}: {}", in.request.method, in.request.path, e.what());
  }
  return problem({500, "internal", "the server failed", "Its log has the cause.", ""});
}

Task<void> AsioServer::stream(Shard& shard, std::shared_ptr<Connection> connection, Response& response, bool http10) {
  auto& c = *connection;
  auto waker = std::make_shared<Waker>();
  waker->connection = connection;
  waker->shard = &shard;
  struct End {
    Waker& waker;
    ~End() {
      const std::scoped_lock lock(waker.mutex);
      waker.shard = nullptr;
    }
  };
  const End end{*waker};
  const auto head = head_of(response, {http10 ? Framing::until_close : Framing::chunked, false, http10});
  if (!co_await send(c, head, kNoBody)) co_return;
  c.socket.async_read_some(asio::buffer(c.scratch), [connection](error_code ec, std::size_t) {
    connection->peer_gone = static_cast<bool>(ec);
    if (ec) connection->alarm.cancel();
  });
  response.stream->attach([waker] { wake(waker); });
  bool ended = false, slept_out = false;
  while (!ended && !stopping_ && !c.peer_gone) {
    waker->woken = false;
    std::pair<std::string, bool> pulled;
    co_await asio::post(asio::bind_executor(pool_.get_executor(), kAwait));
    const bool fine = pull(*response.stream, pulled);
    co_await asio::post(c.socket.get_executor(), kAwait);
    if (!fine) co_return;  // without a last chunk, so that the client sees the loss and resumes
    ended = pulled.second;
    auto& text = pulled.first;
    const bool more = !text.empty();
    if (!more && slept_out && !ended) text = ":\n\n";
    if (!text.empty() && !http10) text = chunk_of(text);
    if (!text.empty() && !co_await send(c, text, kNoBody)) co_return;
    slept_out = false;
    if (more || ended || stopping_ || c.peer_gone || waker->woken) continue;
    c.alarm.expires_after(limits_.stream_heartbeat);
    auto [ec] = co_await c.alarm.async_wait(kTry);
    slept_out = !ec;
  }
  if (!http10 && !c.peer_gone) co_await send(c, kLastChunk, kNoBody);
}

// False: the peer is gone, or did not take it in time.
Task<bool> AsioServer::send(Connection& c, std::string_view head, std::string_view body) {
  if (forced_) co_return false;
  c.idle = false;
  c.expired = false;
  c.deadline = Clock::now() + limits_.request_timeout;
  const std::array<asio::const_buffer, 2> both{asio::buffer(head), asio::buffer(body)};
  auto [ec, bytes] = co_await asio::async_write(c.socket, both, kTry);
  c.deadline = kNever;  // what comes next may wait for the pool
  co_return !ec && !c.expired;
}

// Closing with unread bytes would reset the connection and may take our answer from the client's hands: half-close,
// read on a little.
Task<void> AsioServer::linger(Connection& c) {
  error_code ignored;
  c.socket.shutdown(Socket::shutdown_send, ignored);
  c.idle = true;
  c.deadline = Clock::now() + kLinger;
  for (std::size_t dropped = 0; dropped < kLingerBytesMax && !c.expired;) {
    c.buffer.clear();
    auto [ec, bytes] = co_await c.socket.async_read_some(c.buffer.prepare(kIdleBufferBytesMax), kTry);
    if (ec) break;
    dropped += bytes;
  }
}

}  // namespace kbench::http
