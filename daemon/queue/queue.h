// What happens between a submitter and a grader in one process: admission, waiting for work, leases that run out, news
// of changes.
//
// All state is the store's; what is here may be lost at any instant. Every method is safe from any thread; StoreFault
// passes through unless said otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/grader/attempt_source.h"
#include "daemon/store/store.h"

namespace kbench::queue {

struct Options {
  std::int64_t depth_max = 100'000;  // submissions that wait; one more is refused
  int attempts_max = 3;              // attempts that may end by an infrastructure fault, the last ends the submission
  std::chrono::milliseconds lease{30'000};  // what a grader that says nothing keeps its submission for
  std::chrono::milliseconds sweep{1'000};   // between two looks for leases that ran out and retries that are due
  int subscriptions_max = 4'000;            // that wait for news
};

// News of single submissions, for those who watch one now (event streams).
class Hub {
 public:
  // Ends the subscription when it goes; its `wake` is not running any more then, nor will it.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&& other) noexcept : end_(std::move(other.end_)) { other.end_ = nullptr; }
    Subscription& operator=(Subscription&& other) noexcept;
    ~Subscription();

   private:
    friend class Hub;
    std::function<void()> end_;
  };

  explicit Hub(int subscriptions_max);
  // `wake` is called after each change, from any thread, under a lock: it must neither block nor call the hub. Look at
  // the store after subscribing: what changed before is not announced. nullopt when there are subscriptions_max
  // already.
  std::optional<Subscription> subscribe(const std::string& id, std::function<void()> wake);
  void notify(const std::string& id);
  int subscriptions() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

enum class Admitted : std::uint8_t {
  created,
  replayed,
  key_conflict,   // the key was used with another body
  key_in_flight,  // the first request with the key has not been answered yet
  queue_full,
  stopping  // the daemon is going down
};
struct Admission {
  Admitted how;
  store::Submission submission;
};  // submission: when created, replayed or in conflict

class Queue {
 public:
  Queue(store::Store& store, const Options& options);
  ~Queue();  // stops; every source must be gone

  Admission submit(const store::NewSubmission& submission);
  Hub& hub();
  std::int64_t depth_max() const;  // submissions that may wait

  // The submissions as one grader sees them. claim() wakes as soon as something becomes claimable. renew() may be
  // called as often as a cancel should be noticed: it asks the store only when a third of the lease has gone or the
  // submission has changed, and by a write, which waits for no reader. finish() waits for a store that is full or out
  // of reach until it is back, or stop().
  std::unique_ptr<grader::AttemptSource> source(const std::string& grader);

  // Ends waiting claims with nothing and refuses new submissions; what is leased can still be finished or given back.
  void stop();
  // Why the last sweep failed; empty when it did not.
  std::string fault() const;

 private:
  class Source;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kbench::queue
