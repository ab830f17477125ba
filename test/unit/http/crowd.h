// Ten thousand clients in a process of their own: both ends of as many connections would not fit one process's limit of
// descriptors, and its memory is not the server's.
#pragma once

#include <cstdint>

namespace kbench::test {

// Raises the soft limit of descriptors to the hard one; how many connections one process may hold then, at most `most`.
int connections_possible(int most);

class Crowd {
 public:
  Crowd();  // forks: before any thread is started
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  // So many connections; every second one has sent the beginning of a request. How many there are.
  int connect(std::uint16_t port, int count);
  int ask();  // each completes its request for /ping; how many were answered

 private:
  int to_ = -1, from_ = -1, child_ = -1;
};

long resident_bytes();  // of this process

}  // namespace kbench::test
