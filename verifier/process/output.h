// What a worker prints: drained by a thread, so that it never blocks on it, kept up to a cap. Inside the folder only.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace kbench::process {

class Output {
 public:
  explicit Output(std::size_t bytes_max);  // throws ProcessFault
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  int write_end() const { return write_; }
  void close_write_end();  // after the fork: the worker's copies alone keep the pipe open
  std::string text() const;

 private:
  void drain();
  void keep(std::string_view raw);  // with the mutex held

  const std::size_t bytes_max_;
  int read_ = -1, write_ = -1, quit_ = -1;
  mutable std::mutex mutex_;
  std::string kept_;
  std::uint64_t dropped_ = 0;  // raw bytes
  std::thread thread_;
};

}  // namespace kbench::process
