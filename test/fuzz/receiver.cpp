// Bytes on a connection to an attempt's report socket, at once and in two writes; each byte 0xff of the input ends the
// first. However they are cut, the same events are taken.
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>

#include "daemon/grader/receiver.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/socket.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

// One receiver for all inputs, since a thread costs a sanitizer milliseconds; a new log for each, in the place of the
// last: between two connections the receiver does not look at it.
struct Site {
  Site() {
    require(::mkdtemp(folder.data()) != nullptr, "a folder for the socket");
    limits.header_bytes_max = 512;
    limits.body_bytes_max = 1024;
    limits.peer_uid = ::getuid();
    begin();
    receiver = std::make_unique<grader::Receiver>(folder, *log, limits);
  }
  void begin() {
    events.clear();
    log.emplace([this](std::int64_t seq, const std::string&, const std::string& json) {
      require(seq == static_cast<std::int64_t>(events.size()) + 1, "one after the other");
      require(json.size() <= limits.body_bytes_max, "no event longer than a body");
      events.push_back(json);
    });
  }
  std::string folder = "/tmp/kbench-fuzz-XXXXXX";
  grader::ReceiverLimits limits;
  std::vector<std::string> events;
  std::optional<grader::EventLog> log;
  std::unique_ptr<grader::Receiver> receiver;
};

// What was sent has been taken, or the connection has ended.
void wait_until_taken(int socket) {
  for (int left = 1; left != 0; ::sched_yield()) require(::ioctl(socket, SIOCOUTQ, &left) == 0, "how much is left");
}

struct Outcome {
  std::vector<std::string> events;
  std::optional<std::string> last;
  std::string answers;
};

Outcome receive(std::string_view first, std::string_view second) {
  static Site& site = *new Site;  // its thread ends with the process
  site.begin();
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (site.folder + "/report.sock").c_str());
  require(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "it listens");
  send_all(socket, first);
  wait_until_taken(socket);
  send_all(socket, second);
  ::shutdown(socket, SHUT_WR);
  Outcome out;
  out.answers = received_until_end(socket);
  ::close(socket);
  out.events = site.events;
  out.last = site.log->last();
  return out;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(bytes.find('\xff'), bytes.size());
  const std::string_view first = bytes.substr(0, cut), second = bytes.substr(std::min(cut + 1, bytes.size()));
  const Outcome whole = receive(std::string(first).append(second), {}), halves = receive(first, second);
  require(whole.answers.empty() || whole.answers.starts_with("HTTP/1.1 "), "an answer, or none");
  require(whole.events == halves.events && whole.last == halves.last, "the same, however it is cut");
  require(whole.events.empty() || whole.answers.find("{\"next\":") != std::string::npos, "what was taken was answered");
  return 0;
}
