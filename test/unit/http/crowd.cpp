#include "test/unit/http/crowd.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "test/unit/http/client.h"

namespace kbench::test {
namespace {

constexpr int kConnect = 1, kAsk = 2;
constexpr std::string_view kBegin = "GET /ping HTTP/1.1\r\nHo", kRest = "st: h\r\n\r\n";

struct Message {
  int what, value, port;
};

int serve(std::vector<RawClient>& clients, const Message& message) {
  if (message.what == kConnect) {
    for (int i = 0; i < message.value; ++i) {
      clients.emplace_back(static_cast<std::uint16_t>(message.port));
      if (i % 2 == 1 && !clients.back().send(kBegin)) return i;
    }
    return static_cast<int>(clients.size());
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (i % 2 == 0) clients[i].send(kBegin);
    clients[i].send(kRest);
  }
  int answered = 0;
  for (auto& client : clients) answered += body_of(client.answer(std::chrono::seconds(60))) == "pong";
  return answered;
}

[[noreturn]] void live(int from, int to) {
  std::vector<RawClient> clients;
  Message message{};
  while (::read(from, &message, sizeof message) == static_cast<ssize_t>(sizeof message)) {
    int result = -1;
    try {
      result = serve(clients, message);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "crowd: %s\n", e.what());
    }
    if (::write(to, &result, sizeof result) < 0) break;
  }
  ::_exit(0);
}

}  // namespace

void allow_connections(int count) {
  constexpr rlim_t kOthers = 200;
  const rlim_t wanted = static_cast<rlim_t>(count) + kOthers;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  files.rlim_max = std::max(files.rlim_max, wanted);  // for root alone
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0)
    throw std::runtime_error("this test needs " + std::to_string(wanted) + " descriptors: ulimit -Hn");
}

Crowd::Crowd() {
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) throw std::runtime_error("pipe");
  child_ = ::fork();
  if (child_ == 0) {
    ::close(there[1]);
    ::close(back[0]);
    live(there[0], back[1]);
  }
  ::close(there[0]);
  ::close(back[1]);
  to_ = there[1];
  from_ = back[0];
}

Crowd::~Crowd() {
  ::close(to_);
  ::close(from_);
  ::waitpid(child_, nullptr, 0);
}

int Crowd::connect(std::uint16_t port, int count) {
  const Message message{kConnect, count, port};
  int result = -1;
  if (::write(to_, &message, sizeof message) < 0 || ::read(from_, &result, sizeof result) <= 0) return -1;
  return result;
}

int Crowd::ask() {
  const Message message{kAsk, 0, 0};
  int result = -1;
  if (::write(to_, &message, sizeof message) < 0 || ::read(from_, &result, sizeof result) <= 0) return -1;
  return result;
}

long resident_bytes() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace kbench::test
