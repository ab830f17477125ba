#include "test/unit/http/client.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace kbench::test {
using std::chrono::steady_clock;

RawClient::RawClient(std::uint16_t port, int receive_buffer_bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer_bytes != 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("connect");
}

RawClient::~RawClient() {
  if (socket_ >= 0) ::close(socket_);
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), seen_(std::move(other.seen_)) {}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::half_close() { ::shutdown(socket_, SHUT_WR); }

void RawClient::vanish() {
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);  // no byte of any packet
  const sock_fprog filter{1, &drop};
  if (::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
    throw std::runtime_error("a filter for packets");
}

bool RawClient::read_more(steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
  pollfd entry{socket_, POLLIN, 0};
  if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) <= 0) return false;
  char block[65536];
  const auto got = ::recv(socket_, block, sizeof block, 0);
  if (got <= 0) return false;
  seen_.append(block, static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::answer(std::chrono::milliseconds patience, bool head_only) {
  const auto deadline = steady_clock::now() + patience;
  while (true) {
    const auto end = seen_.find("\r\n\r\n");
    if (end != std::string::npos) {
      std::size_t length = 0;
      const auto at = seen_.find("Content-Length: ");
      if (at != std::string::npos && at < end && !head_only) length = std::stoul(seen_.substr(at + 16));
      if (seen_.size() >= end + 4 + length) {
        std::string out = seen_.substr(0, end + 4 + length);
        seen_.erase(0, end + 4 + length);
        return out;
      }
    }
    if (!read_more(deadline)) return "";
  }
}

std::string RawClient::until(std::string_view text, std::chrono::milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  std::size_t searched = 0;
  while (seen_.find(text, searched) == std::string::npos && read_more(deadline)) {
    searched = seen_.size() > text.size() + 65536 ? seen_.size() - text.size() - 65536 : 0;
  }
  return seen_;
}

bool RawClient::closed(std::chrono::milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  while (read_more(deadline)) {
  }
  return steady_clock::now() < deadline;
}

}  // namespace kbench::test
