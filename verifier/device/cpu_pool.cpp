#include "verifier/device/cpu_pool.h"

#include <sched.h>

#include <algorithm>

namespace kbench::verify {
namespace {

constexpr int kProcessorsMax = 4096;

std::vector<int> affinity() {
  cpu_set_t* set = CPU_ALLOC(kProcessorsMax);
  const std::size_t bytes = CPU_ALLOC_SIZE(kProcessorsMax);
  std::vector<int> processors;
  if (sched_getaffinity(0, bytes, set) == 0)
    for (int i = 0; i < kProcessorsMax; ++i)
      if (CPU_ISSET_S(i, bytes, set)) processors.push_back(i);
  CPU_FREE(set);
  if (processors.empty()) processors.push_back(0);
  return processors;
}

void pin(int processor) {
  cpu_set_t* set = CPU_ALLOC(kProcessorsMax);
  const std::size_t bytes = CPU_ALLOC_SIZE(kProcessorsMax);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(processor, bytes, set);
  sched_setaffinity(0, bytes, set);  // only a matter of speed
  CPU_FREE(set);
}

}  // namespace

CpuPool::CpuPool() : processors_(affinity()) {
  for (const int processor : processors_) threads_.emplace_back([this, processor] { serve(processor); });
}

CpuPool::~CpuPool() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CpuPool::run(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  std::unique_lock lock(mutex_);
  body_ = &body;
  count_ = count;
  grain_ = std::max<std::int64_t>(grain, 1);
  next_ = 0;
  failure_ = nullptr;
  busy_ = size();
  ++round_;
  start_.notify_all();
  end_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void CpuPool::serve(int processor) {
  pin(processor);
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return quit_ || round_ != done; });
    if (quit_) return;
    done = round_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      take_ranges();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--busy_ == 0) end_.notify_one();
  }
}

void CpuPool::take_ranges() {
  for (std::int64_t begin; (begin = next_.fetch_add(grain_)) < count_;)
    (*body_)(begin, std::min(begin + grain_, count_));
}

}  // namespace kbench::verify
