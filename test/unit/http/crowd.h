// Ten thousand clients in a process of their own: both ends of as many connections would not fit one process's limit of
// descriptors, and its memory is not the server's.
#pragma once

#include <cstdint>

namespace kbench::test {

// Raises the limit of descriptors to what so many connections take, in a process of their own too. Throws where that is
// not allowed, and says what to do.
void allow_connections(int count);

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

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KBENCH_SANITIZED
#endif
#endif
#ifdef KBENCH_SANITIZED
inline constexpr long kOverhead = 8;  // of a sanitizer, on bounds of memory and of time
#else
inline constexpr long kOverhead = 1;
#endif

}  // namespace kbench::test
