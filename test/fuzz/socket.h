// Bytes to a server under test and back. libFuzzer's timer interrupts calls.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace kbench::fuzz {

inline void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

inline std::string received_until_end(int socket) {
  std::string text;
  char block[4096];
  for (;;) {
    const ssize_t got = ::recv(socket, block, sizeof block, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace kbench::fuzz
