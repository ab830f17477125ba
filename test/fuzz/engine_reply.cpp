// Whole answers of an Engine, from the status line on (chunks too), to the call that the first byte chooses.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "daemon/engine/engine.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;
using namespace kbench::engine;

namespace {

// Answers negotiation as an Engine does, anything else with the bytes it was given.
class Replies {
 public:
  Replies() : path_("/tmp/kbench-fuzz-" + std::to_string(::getpid()) + ".sock") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ::unlink(path_.c_str());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(listener_, 64) == 0,
        "a socket to listen at");
    std::atexit([] { ::unlink(("/tmp/kbench-fuzz-" + std::to_string(::getpid()) + ".sock").c_str()); });
    std::thread([this] {
      for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(fd)) serve(fd);
    }).detach();
  }
  void give(std::string_view bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_ = bytes;
  }
  const std::string& path() const { return path_; }

 private:
  void serve(int fd) {
    std::string head;
    char block[65536];
    while (head.find("\r\n\r\n") == head.npos) {
      const ssize_t got = ::recv(fd, block, sizeof block, 0);
      if (got <= 0) return;
      head.append(block, static_cast<std::size_t>(got));
    }
    std::string answer;
    if (head.find("/_ping ") != head.npos) {
      answer = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n";
    } else if (head.find(" /version ") != head.npos) {
      answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    } else {
      const std::scoped_lock lock(mutex_);
      answer = bytes_;
    }
    for (std::string_view rest = answer; !rest.empty();) {
      const ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    // What the client still sends (a build's context) is read, else closing would take the answer from its hands.
    ::shutdown(fd, SHUT_WR);
    while (::recv(fd, block, sizeof block, 0) > 0) {
    }
  }
  std::string path_;
  int listener_ = -1;
  std::mutex mutex_;
  std::string bytes_;
};

Options quick(const std::string& socket) {
  Options options;
  options.socket = socket;
  options.reply_bytes_max = options.build_message_bytes_max = options.build_log_bytes_max = options.log_bytes_max =
      4096;
  options.build_timeout = milliseconds(5000);
  return options;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  static Replies& replies = *new Replies;
  static Engine& engine = *new Engine(quick(replies.path()));
  Input input(data, size);
  const unsigned call = input.byte();
  replies.give(input.rest());
  try {
    switch (call % 8) {
      case 0:
        engine.build({{{"Dockerfile", "FROM x\n"}}, {"a:b"}, {}, {}, "none"});
        break;
      case 1:
        require(engine.logs("x").size() <= 3 * 4096 + 64, "a log within its limit");
        break;
      case 2:
        if (const auto container = engine.inspect("x")) require(!container->id.empty(), "a container has an id");
        break;
      case 3:
        engine.containers("a");
        break;
      case 4:
        if (const auto image = engine.image("x")) require(!image->id.empty(), "an image has an id");
        break;
      case 5:
        engine.images("a");
        break;
      case 6:
        engine.info();
        break;
      default:
        engine.events("a", [] {}, [](const Event&) {}, {});
    }
  } catch (const EngineError&) {
  }
  return 0;
}
