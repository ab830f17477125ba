// One page shared with a worker, and the start of its process. Inside the folder only.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "verifier/process/process.h"

namespace kbench::process {

// A sealed memfd of one page, mapped here. The seals make whatever a worker does to the descriptor harmless for the
// mapping here: without SHRINK it could truncate the page away under the verifier (SIGBUS).
class Page {
 public:
  enum class Writer { verifier, worker };
  Page(const char* name, Writer writer);  // throws ProcessFault
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  void* data() const { return data_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  void* data_ = nullptr;
};

// Starts the program with descriptor 3 the socket, 1 and 2 the output, 0 /dev/null, and nothing else open. Throws
// ProcessFault also when the program could not be executed, saying at which step.
pid_t spawn(const Command& command, int socket, int output);

}  // namespace kbench::process
