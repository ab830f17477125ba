// Listens on one attempt's report.sock for the verifier's events (protocol: sdk/kbench/events.h), in a thread of its
// own.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "daemon/grader/event_log.h"

namespace kbench::grader {

struct ReceiverLimits {
  int connections_max = 4;
  std::size_t header_bytes_max = 8 * 1024, body_bytes_max = 1024 * 1024;
  std::chrono::milliseconds request_timeout{10'000};  // from the first byte of a request to its last
  unsigned peer_uid = 0;                              // of the verifier as the kernel shows it here
};

class Receiver {
 public:
  // Listens in `folder`; throws std::runtime_error, also for a path too long for a socket. `log` must outlive it.
  Receiver(const std::string& folder, EventLog& log, const ReceiverLimits& limits = {});
  ~Receiver();  // stops at once; the socket file is gone

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace kbench::grader
