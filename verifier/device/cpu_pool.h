// The cpu device's threads: one a processor of the affinity mask, pinned to it, asleep between runs. Inside the folder
// only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kbench::verify {

class CpuPool {
 public:
  CpuPool();
  ~CpuPool();
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  const std::vector<int>& processors() const { return processors_; }
  // body(begin, end) over [0, count) cut into ranges of `grain`, on all threads; returns when all are done. What a body
  // throws comes out here, the first of them. Not to be nested.
  using Body = std::function<void(std::int64_t begin, std::int64_t end)>;
  void run(std::int64_t count, std::int64_t grain, const Body& body);

 private:
  void serve(int processor);
  void take_ranges();

  std::vector<int> processors_;
  std::mutex mutex_;
  std::condition_variable start_, end_;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool quit_ = false;
  const Body* body_ = nullptr;
  std::int64_t count_ = 0, grain_ = 1;
  std::atomic<std::int64_t> next_{0};
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace kbench::verify
