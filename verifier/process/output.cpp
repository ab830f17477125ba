#include "verifier/process/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "verifier/process/process.h"

namespace kbench::process {

constexpr auto kSettle = std::chrono::milliseconds(200);

std::string escaped(std::string_view raw, std::size_t bytes_max) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const char c : raw) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= 0x20 && byte < 0x7f && c != '\\') || c == '\n' || c == '\t';
    if (text.size() + (plain ? 1 : 4) > bytes_max) break;
    if (plain) {
      text += c;
    } else {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    }
  }
  return text;
}

Output::Output(std::size_t bytes_max) : bytes_max_(bytes_max) {
  int ends[2];
  quit_ = eventfd(0, EFD_CLOEXEC);
  if (quit_ < 0 || pipe2(ends, O_CLOEXEC) != 0) throw ProcessFault(std::string("output pipe: ") + strerror(errno));
  read_ = ends[0];
  write_ = ends[1];
  fcntl(read_, F_SETFL, O_NONBLOCK);  // of this end's description alone: the writer's end stays as it is
  thread_ = std::thread([this] { drain(); });
}

Output::~Output() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(quit_, &one, sizeof one);
  thread_.join();
  close_write_end();
  close(read_);
  close(quit_);
}

void Output::close_write_end() {
  if (write_ >= 0) close(write_);
  write_ = -1;
}

std::string Output::text() const {
  // What an ended worker has left in the pipe is on its way; what a living one goes on writing is not waited for.
  const auto end = std::chrono::steady_clock::now() + kSettle;
  for (int waiting = 0; ioctl(read_, FIONREAD, &waiting) == 0 && waiting > 0 && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::lock_guard lock(mutex_);
  if (dropped_ == 0) return kept_;
  return kept_ + "\n[" + std::to_string(dropped_) + " more bytes dropped]\n";
}

void Output::drain() {
  char block[16 * 1024];
  pollfd wait[2] = {{read_, POLLIN, 0}, {quit_, POLLIN, 0}};
  for (;;) {
    if (poll(wait, 2, -1) < 0 && errno != EINTR) return;
    if (wait[1].revents != 0) return;
    const std::lock_guard lock(mutex_);
    const ssize_t got = read(read_, block, sizeof block);
    if (got == 0) wait[0].fd = -1;  // all writers are gone
    if (got > 0) keep({block, static_cast<std::size_t>(got)});
  }
}

void Output::keep(std::string_view raw) {
  // Once something was dropped all is: no text with holes.
  while (dropped_ == 0 && !raw.empty()) {
    const std::string one = escaped(raw.substr(0, 1), bytes_max_ - kept_.size());
    if (one.empty()) break;
    kept_ += one;
    raw.remove_prefix(1);
  }
  dropped_ += raw.size();
}

}  // namespace kbench::process
