// Inside report/: what reporter and sender share.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kbench::report {

// The file of events and where each begins. Written by the grading, read by the sender: the file is the sender's only
// buffer, so what it holds in memory is 8 bytes an event and one batch.
struct Spool {
  int fd = -1;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::uint64_t> ends;  // ends[i]: the file's length after event i + 1
  std::int64_t sent = 0;            // events the listener is known to have

  std::int64_t count_locked() const { return static_cast<std::int64_t>(ends.size()); }
};

// Sends the spool to a listener until stopped, in a thread of its own.
class Sender {
 public:
  Sender(Spool& spool, std::string socket_path);  // throws std::system_error
  ~Sender();                                      // stops at once, whatever the listener does
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

 private:
  void loop();
  void converse();

  Spool& spool_;
  std::string path_;
  int stop_fd_;            // readable when the sender must leave
  bool stopping_ = false;  // under the spool's mutex
  std::thread thread_;
};

}  // namespace kbench::report
