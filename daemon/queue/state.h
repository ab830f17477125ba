// What a Queue and its sources share.
#pragma once

#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "daemon/queue/queue.h"

namespace kbench::queue {

struct Queue::State {
  State(store::Store& s, const Options& o)
      : store(s), options(o), hub(o.subscriptions_max), held(std::numeric_limits<int>::max()) {}

  store::Store& store;
  const Options options;
  Hub hub;
  Hub held;  // the sources' own subscriptions, one a lease: never refused

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t claimable = 0;  // counts the announcements
  bool stopping = false;
  std::string fault;
  std::set<std::pair<std::string, std::string>> keys;  // submitter and idempotency key of the requests being stored
  std::thread sweeper;

  void sweep();

  // False when `stop` came first.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, time, [this] { return stopping; });
  }
};

}  // namespace kbench::queue
