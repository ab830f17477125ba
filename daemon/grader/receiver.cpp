#include "daemon/grader/receiver.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <list>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kbench::grader {

namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

namespace {

constexpr char kSocketName[] = "/report.sock";

std::string response(int status, const std::string& body, bool keep) {
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(http::obsolete_reason(http::int_to_status(status))) +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: " + (keep ? "keep-alive" : "close") + "\r\n\r\n" + body;
}

// One connection: Beast parses, we move the bytes, since Asio's blocking calls know no deadline.
class Connection {
 public:
  Connection(int socket_fd, EventLog& log, const ReceiverLimits& limits) : fd(socket_fd), log_(log), limits_(limits) {
    reset();
  }
  ~Connection() { ::close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const int fd;
  Clock::time_point deadline = Clock::time_point::max();  // of the request being read

  // False: close it.
  bool readable() {
    char bytes[16384];
    const ssize_t count = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    if (pending_.empty() && deadline == Clock::time_point::max()) deadline = Clock::now() + limits_.request_timeout;
    pending_.append(bytes, static_cast<std::size_t>(count));
    while (!pending_.empty()) {
      boost::system::error_code error;
      const std::size_t used = parser_->put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      taken_ += used;
      if ((error && error != http::error::need_more) || too_long())
        return send(response(400, "{\"error\":\"malformed request\"}", false)), false;
      if (error) return true;
      if (!parser_->is_done()) {
        if (used == 0) return true;
        continue;
      }
      if (!answer()) return false;
      reset();
      if (!pending_.empty()) deadline = Clock::now() + limits_.request_timeout;
    }
    return true;
  }

 private:
  void reset() {
    parser_ = std::make_unique<http::request_parser<http::string_body>>();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes_max));
    parser_->body_limit(limits_.body_bytes_max);
    parser_->eager(true);
    taken_ = 0;
    deadline = Clock::time_point::max();
  }

  // Beast bounds what it has not taken yet of a header, and nothing of a chunk's extensions or a trailer: who sends a
  // few at a time could go on until the deadline.
  bool too_long() const {
    const std::size_t body = parser_->is_header_done() ? limits_.body_bytes_max : 0;
    return taken_ + (parser_->is_done() ? 0 : pending_.size()) > limits_.header_bytes_max + body;
  }

  bool answer() {
    const auto& request = parser_->get();
    const bool keep = request.keep_alive();
    EventLog::Answer answer{400, log_.next()};
    if (request.target() != "/events") return send(response(404, "{\"error\":\"no such path\"}", keep)) && keep;
    if (request.method() == http::verb::get) {
      answer.status = 200;
    } else if (request.method() == http::verb::post) {
      try {
        answer = log_.take(request.body());
      } catch (const std::exception&) {  // the store is away: the verifier tries again, and its spool has everything
        return send(response(503, "{\"error\":\"try again\"}", keep)) && keep;
      }
    } else {
      return send(response(405, "{\"error\":\"GET or POST\"}", keep)) && keep;
    }
    return send(response(answer.status, "{\"next\":" + std::to_string(answer.next) + "}", keep)) && keep;
  }

  bool send(const std::string& text) {  // fits the socket's buffer: an answer is a hundred bytes
    return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size());
  }

  EventLog& log_;
  const ReceiverLimits& limits_;
  std::unique_ptr<http::request_parser<http::string_body>> parser_;
  std::string pending_;
  std::size_t taken_ = 0;  // of the request being read
};

}  // namespace

class Receiver::Server {
 public:
  Server(const std::string& folder, EventLog& log, const ReceiverLimits& limits)
      : path_(folder + kSocketName), log_(log), limits_(limits) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path)
      throw std::runtime_error("the path of the report socket is too long (107 bytes at most): " + path_);
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ::unlink(path_.c_str());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    stop_ = ::eventfd(0, EFD_CLOEXEC);
    if (listener_ < 0 || stop_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::chmod(path_.c_str(), 0777) != 0 || ::listen(listener_, 8) != 0) {
      const std::string why = std::strerror(errno);
      close_all();
      throw std::runtime_error("cannot listen at " + path_ + ": " + why);
    }
    thread_ = std::thread([this] { serve(); });
  }

  ~Server() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_, &one, sizeof one);
    thread_.join();
    connections_.clear();
    close_all();
    ::unlink(path_.c_str());
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  void serve() {
    while (true) {
      std::vector<pollfd> polled = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Connection& connection : connections_) polled.push_back({connection.fd, POLLIN, 0});
      ::poll(polled.data(), polled.size(), 500);
      if (polled[0].revents) return;
      std::size_t index = 2;
      for (auto it = connections_.begin(); it != connections_.end(); ++index) {
        const bool late = Clock::now() > it->deadline;
        const bool keep = !late && (polled[index].revents == 0 || readable(*it));
        it = keep ? std::next(it) : connections_.erase(it);
      }
      if (polled[1].revents) accept();
    }
  }

  // Nothing that a container sends ends this thread: kbenchd would end with it.
  static bool readable(Connection& connection) {
    try {
      return connection.readable();
    } catch (const std::exception&) {
      return false;
    }
  }

  void accept() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == limits_.peer_uid;
    if (!known || connections_.size() >= static_cast<std::size_t>(limits_.connections_max)) {
      ::close(fd);
      return;
    }
    connections_.emplace_back(fd, log_, limits_);
  }

  void close_all() {
    if (listener_ >= 0) ::close(listener_);
    if (stop_ >= 0) ::close(stop_);
  }

  const std::string path_;
  EventLog& log_;
  const ReceiverLimits limits_;
  int listener_ = -1, stop_ = -1;
  std::list<Connection> connections_;
  std::thread thread_;
};

Receiver::Receiver(const std::string& folder, EventLog& log, const ReceiverLimits& limits)
    : server_(std::make_unique<Server>(folder, log, limits)) {}
Receiver::~Receiver() = default;

}  // namespace kbench::grader
