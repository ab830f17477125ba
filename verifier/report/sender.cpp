#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "verifier/report/report.h"
#include "verifier/report/spool.h"

namespace kbench::report {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// Anything wrong with the listener. Never leaves this file: the grading does not depend on who listens.
struct ListenerFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A Beast stream over a non-blocking unix socket with one deadline and a descriptor that ends every wait. Asio's own
// synchronous operations have neither: they wait for as long as the peer likes.
class UnixStream {
 public:
  UnixStream(const std::string& path, int stop_fd) : stop_fd_(stop_fd) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw ListenerFault("the socket's path is too long");
    std::memcpy(address.sun_path, path.data(), path.size());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) throw ListenerFault("no socket");
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
        0) {  // unix: at once, or not at all
      ::close(fd_);
      throw ListenerFault("nobody listens");
    }
  }
  ~UnixStream() { ::close(fd_); }
  UnixStream(const UnixStream&) = delete;
  UnixStream& operator=(const UnixStream&) = delete;

  void restart_deadline() { deadline_ = Clock::now() + std::chrono::seconds(kExchangeSeconds); }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& ec) {
    const boost::asio::mutable_buffer buffer = first_of(buffers);
    return transfer(POLLIN, ec, [&] { return ::recv(fd_, buffer.data(), buffer.size(), 0); }, true);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& ec) {
    const boost::asio::const_buffer buffer = first_of(buffers);
    return transfer(POLLOUT, ec, [&] { return ::send(fd_, buffer.data(), buffer.size(), MSG_NOSIGNAL); }, false);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    return throwing([&](error_code& ec) { return read_some(buffers, ec); });
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    return throwing([&](error_code& ec) { return write_some(buffers, ec); });
  }

 private:
  template <class Buffers>
  static auto first_of(const Buffers& buffers) {
    auto it = boost::asio::buffer_sequence_begin(buffers);
    const auto end = boost::asio::buffer_sequence_end(buffers);
    while (it != end && boost::asio::buffer_size(*it) == 0) ++it;
    using Buffer = std::decay_t<decltype(*it)>;
    return it == end ? Buffer() : Buffer(*it);
  }
  template <class Operation>
  static std::size_t throwing(Operation operation) {
    error_code ec;
    const std::size_t done = operation(ec);
    if (ec) throw boost::system::system_error(ec);
    return done;
  }

  template <class Call>
  std::size_t transfer(short wanted, error_code& ec, Call call, bool zero_is_end) {
    for (;;) {
      const ssize_t done = call();
      if (done > 0 || (done == 0 && !zero_is_end)) return static_cast<std::size_t>(done);
      if (done == 0) return ec = http::error::end_of_stream, 0;
      if (errno != EAGAIN && errno != EINTR) return ec = error_code(errno, boost::system::system_category()), 0;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      pollfd waits[2] = {{fd_, wanted, 0}, {stop_fd_, POLLIN, 0}};
      const int ready = left > 0 ? ::poll(waits, 2, static_cast<int>(left)) : 0;
      if (ready == 0 || (waits[1].revents & POLLIN))
        return ec = error_code(ETIMEDOUT, boost::system::system_category()), 0;
    }
  }

  int fd_;
  int stop_fd_;
  Clock::time_point deadline_ = Clock::now();
};

// One request and its answer: the listener's `next`. 409 is an answer too: it says where to go on.
std::int64_t exchange(UnixStream& stream, beast::flat_buffer& buffer, http::verb verb, std::string body) {
  http::request<http::string_body> request{verb, "/events", 11};
  request.set(http::field::host, "kbench");
  if (verb == http::verb::post) request.set(http::field::content_type, "application/x-ndjson");
  request.body() = std::move(body);
  request.prepare_payload();
  stream.restart_deadline();
  error_code ec;
  http::write(stream, request, ec);
  if (ec) throw ListenerFault(ec.message());
  http::response_parser<http::string_body> parser;
  parser.header_limit(8 * 1024);
  parser.body_limit(64 * 1024);
  http::read(stream, buffer, parser, ec);
  if (ec) throw ListenerFault(ec.message());
  const auto& response = parser.get();
  const bool gap = verb == http::verb::post && response.result() == http::status::conflict;
  if (response.result() != http::status::ok && !gap)
    throw ListenerFault("status " + std::to_string(response.result_int()));
  const auto answer = nlohmann::json::parse(response.body(), nullptr, false);
  const auto next = answer.is_object() ? answer.find("next") : answer.end();
  if (!answer.is_object() || next == answer.end() || !next->is_number_integer() || next->get<std::int64_t>() < 1) {
    throw ListenerFault("an answer without next");
  }
  if (!response.keep_alive()) throw ListenerFault("the listener closes after each request");
  return next->get<std::int64_t>();
}

std::string read_spool(int fd, std::uint64_t from, std::uint64_t to) {
  std::string text(to - from, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw ListenerFault("cannot read the spool back");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace

Sender::Sender(Spool& spool, std::string socket_path)
    : spool_(spool), path_(std::move(socket_path)), stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = std::thread([this] { loop(); });
}

Sender::~Sender() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(stop_fd_, &one, sizeof one);
  {
    const std::scoped_lock lock(spool_.mutex);
    stopping_ = true;
    spool_.changed.notify_all();
  }
  thread_.join();
  ::close(stop_fd_);
}

// Meets a listener, talks for as long as that goes well, and starts again: it may have died, restarted or lost what it
// had.
void Sender::loop() {
  int backoff_ms = kBackoffMsMin;
  std::int64_t seen = 0;
  for (;;) {
    try {
      converse();
      return;
    } catch (const std::exception&) {  // ListenerFault, or no memory: the spool still has everything
    }
    std::unique_lock lock(spool_.mutex);
    if (spool_.sent != seen) backoff_ms = kBackoffMsMin;
    seen = spool_.sent;
    if (spool_.changed.wait_for(lock, std::chrono::milliseconds(backoff_ms), [&] { return stopping_; })) return;
    backoff_ms = std::min(backoff_ms * 2, kBackoffMsMax);
  }
}

// Returns when the sender must stop; throws for anything wrong with the listener.
void Sender::converse() {
  UnixStream stream(path_, stop_fd_);
  beast::flat_buffer buffer(16 * 1024);
  std::int64_t next = exchange(stream, buffer, http::verb::get, "");
  int gaps = 0;
  for (;;) {
    std::uint64_t from = 0, to = 0;
    {
      std::unique_lock lock(spool_.mutex);
      spool_.sent = next - 1;
      spool_.changed.notify_all();
      spool_.changed.wait(lock, [&] { return stopping_ || spool_.count_locked() >= next; });
      if (stopping_) return;
      const auto& ends = spool_.ends;
      auto last = static_cast<std::size_t>(next - 1);
      from = last == 0 ? 0 : ends[last - 1];
      while (last + 1 < ends.size() && ends[last + 1] - from <= kBatchBytesMax) ++last;
      to = ends[last];
    }
    const std::int64_t answer = exchange(stream, buffer, http::verb::post, read_spool(spool_.fd, from, to));
    // A listener that takes nothing must not be fed the same lines for ever at full speed.
    if (answer <= next && ++gaps > 3) throw ListenerFault("the listener makes no progress");
    if (answer > next) gaps = 0;
    next = answer;
  }
}

}  // namespace kbench::report
