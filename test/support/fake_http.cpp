#include "test/support/fake_http.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>

namespace kbench::test {

namespace {

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

void parse_target(const std::string& target, FakeRequest& request) {
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (request.path.starts_with("/v1.")) {
    const std::size_t slash = request.path.find('/', 1);
    request.version = request.path.substr(2, slash - 2);
    request.path.erase(0, slash);
  }
  std::size_t at = mark == target.npos ? target.size() : mark + 1;
  while (at < target.size()) {
    const std::size_t end = std::min(target.find('&', at), target.size());
    const std::string pair = target.substr(at, end - at);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    request.query[decoded(pair.substr(0, equals))] = equals < pair.size() ? decoded(pair.substr(equals + 1)) : "";
    at = end + 1;
  }
}

bool read_some(int fd, std::string& into) {
  char buffer[65536];
  const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
  if (count <= 0) return false;
  into.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::optional<FakeRequest> read_head(int fd, std::string& rest) {
  std::size_t end;
  while ((end = rest.find("\r\n\r\n")) == rest.npos)
    if (!read_some(fd, rest)) return std::nullopt;
  FakeRequest request;
  const std::string head = rest.substr(0, end + 2);
  rest.erase(0, end + 4);
  std::size_t line_end = head.find("\r\n");
  const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  parse_target(head.substr(first + 1, second - first - 1), request);
  while (line_end + 2 < head.size()) {
    const std::size_t begin = line_end + 2;
    line_end = head.find("\r\n", begin);
    const std::string line = head.substr(begin, line_end - begin);
    std::string name = line.substr(0, line.find(':'));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    request.headers[name] = line.substr(std::min(line.size(), name.size() + 2));
  }
  return request;
}

std::string chunk_of(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

// All but what a stream sends.
std::string bytes_of(const std::string& method, const FakeReply& reply) {
  std::string out =
      "HTTP/1.1 " + std::to_string(reply.status) + " Status\r\nContent-Type: " + reply.content_type + "\r\n";
  for (const auto& [name, value] : reply.headers) out += name + ": " + value + "\r\n";
  const bool chunked = reply.chunk_bytes > 0 || reply.stream;
  const bool bodiless = method == "HEAD" || reply.status == 204 || reply.status == 304;
  if (!bodiless)
    out += chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  out += "Connection: close\r\n\r\n";
  if (bodiless || reply.stream) return out;
  const std::string_view body = std::string_view(reply.body).substr(0, reply.cut_after.value_or(reply.body.size()));
  if (!chunked) return out.append(body);
  for (std::size_t at = 0; at < body.size(); at += reply.chunk_bytes)
    out += chunk_of(body.substr(at, reply.chunk_bytes));
  return reply.cut_after ? out : out + "0\r\n\r\n";
}

void write_reply(FakeWire& wire, const FakeRequest& request, const FakeReply& reply) {
  wire.send(bytes_of(request.method, reply));
  if (!reply.stream || request.method == "HEAD") return;
  if (reply.stream(wire, [&](std::string_view bytes) { wire.send(chunk_of(bytes)); })) wire.send("0\r\n\r\n");
}

}  // namespace

std::size_t whole_bytes(const std::string& method, const FakeReply& reply) { return bytes_of(method, reply).size(); }

bool FakeWire::send(std::string_view bytes) {
  const bool whole = !left_ || bytes.size() <= *left_;
  if (left_) {
    bytes = bytes.substr(0, *left_);
    *left_ -= bytes.size();
  }
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return whole;
}

bool FakeWire::gone() const {
  pollfd poller{fd_, POLLRDHUP, 0};
  return ::poll(&poller, 1, 0) > 0 && (poller.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

FakeHttp::FakeHttp(std::string socket) : socket_(std::move(socket)) { up(); }
FakeHttp::~FakeHttp() { down(); }

void FakeHttp::otherwise(Handler handler) {
  const std::lock_guard lock(mutex_);
  otherwise_ = std::move(handler);
}

void FakeHttp::script(const std::string& what, FakeReply reply, int times) {
  const std::lock_guard lock(mutex_);
  scripts_.push_back({what, [reply](const FakeRequest&) { return reply; }, times, reply.unread_body});
}

void FakeHttp::script(const std::string& what, Handler handler, int times) {
  const std::lock_guard lock(mutex_);
  scripts_.push_back({what, std::move(handler), times, false});
}

void FakeHttp::up() {
  ::unlink(socket_.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof address.sun_path) throw std::runtime_error("socket path too long: " + socket_);
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 128) != 0)
    throw std::runtime_error("cannot listen at " + socket_);
  acceptor_ = std::thread([this] { accept_all(); });
}

void FakeHttp::down() {
  if (listener_ < 0) return;
  ::unlink(socket_.c_str());
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  listener_ = -1;
  {
    const std::lock_guard lock(mutex_);
    for (const Connection& connection : connections_)
      if (!connection.done) ::shutdown(connection.fd, SHUT_RDWR);
  }
  for (Connection& connection : connections_) {
    connection.thread.join();
    ::close(connection.fd);
  }
  connections_.clear();
}

void FakeHttp::accept_all() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      if (!it->done) {
        ++it;
        continue;
      }
      it->thread.join();
      ::close(it->fd);
      it = connections_.erase(it);
    }
    Connection& connection = connections_.emplace_back();
    connection.fd = fd;
    connection.thread = std::thread([this, fd, &connection] {
      serve(fd);
      const std::lock_guard done_lock(mutex_);
      ::shutdown(fd, SHUT_RDWR);
      connection.done = true;
    });
  }
}

void FakeHttp::serve(int fd) {
  std::string rest;
  std::optional<FakeRequest> request = read_head(fd, rest);
  if (!request) return;
  const std::size_t length =
      request->headers.contains("content-length") ? std::stoul(request->headers["content-length"]) : 0;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request->method + " " + request->path);
  }
  // The script decides before the body is read: it may want to answer early.
  const bool early = [&] {
    const std::lock_guard lock(mutex_);
    for (const Script& script : scripts_)
      if (script.left > 0 && requests_.back().starts_with(script.what)) return script.early;
    return false;
  }();
  while (!early && rest.size() < length)
    if (!read_some(fd, rest)) return;
  request->body = rest.substr(0, length);
  const FakeReply reply = answer(*request);
  std::this_thread::sleep_for(reply.delay);
  FakeWire wire(fd, reply.cut_whole);
  if (!reply.drop) write_reply(wire, *request, reply);
}

FakeReply FakeHttp::answer(const FakeRequest& request) {
  Handler handler;
  {
    const std::lock_guard lock(mutex_);
    handler = otherwise_;
    for (Script& script : scripts_) {
      if (script.left <= 0 || !(request.method + " " + request.path).starts_with(script.what)) continue;
      --script.left;
      handler = script.handler;
      break;
    }
  }
  return handler ? handler(request) : FakeReply{.status = 404, .body = R"({"message":"not scripted"})"};
}

std::vector<std::string> FakeHttp::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int FakeHttp::count(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::count_if(requests_.begin(), requests_.end(), [&](const std::string& r) { return r.starts_with(what); }));
}

}  // namespace kbench::test
