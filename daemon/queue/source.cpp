// A grader's view of the queue in the same process.
#include <atomic>
#include <map>
#include <memory>

#include "daemon/queue/state.h"

namespace kbench::queue {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kStorePause =
    500ms;  // between two tries to hand in a result to a store that is out of order

}  // namespace

class Queue::Source : public grader::AttemptSource {
 public:
  Source(std::shared_ptr<State> state, std::string grader) : state_(std::move(state)), grader_(std::move(grader)) {}

  std::optional<store::Lease> claim(const store::Wanted& wanted, std::chrono::milliseconds wait) override {
    store::Wanted mine = wanted;
    mine.grader = grader_;
    mine.lease = state_->options.lease;
    const auto deadline = Clock::now() + wait;
    for (;;) {
      std::uint64_t seen = 0;
      {
        const std::lock_guard lock(state_->mutex);
        if (state_->stopping) return {};
        seen = state_->claimable;
      }
      if (auto lease = state_->store.claim(mine)) {
        keep(lease->submission.id, lease->attempt);
        return lease;
      }
      std::unique_lock lock(state_->mutex);
      if (!state_->changed.wait_until(lock, deadline, [&] { return state_->stopping || state_->claimable != seen; }))
        return {};
    }
  }

  Hold renew(const std::string& id, int attempt) override {
    const std::shared_ptr<Held> held = keep(id, attempt);
    if (!held->is_news.exchange(false) && !is_due(*held)) return hold_of(*held);
    try {
      const auto before = Clock::now();
      const store::Renewed renewed = state_->store.renew(id, attempt, state_->options.lease);
      if (renewed == store::Renewed::lost) {
        forget(id, attempt);
        return Hold::lost;
      }
      const std::lock_guard lock(mutex_);
      held->renewed = before;
      held->cancel = renewed == store::Renewed::cancel;
    } catch (...) {
      held->is_news = true;
      throw;
    }
    return hold_of(*held);
  }

  bool state(const std::string& id, int attempt, store::State state) override {
    return state_->store.set_state(id, attempt, state);
  }

  bool event(const std::string& id, int attempt, std::int64_t attempt_seq, const std::string& type,
             const std::string& json) override {
    return state_->store.append_event(id, attempt, attempt_seq, type, json);
  }

  bool finish(const std::string& id, int attempt, const store::Outcome& outcome) override {
    for (;;) {
      try {
        const bool accepted = state_->store.finish(id, attempt, outcome, state_->options.attempts_max);
        forget(id, attempt);
        return accepted;
      } catch (const store::StoreFault&) {
        if (!state_->pause(kStorePause)) throw;
      }
    }
  }

  bool release(const std::string& id, int attempt) override {
    const bool released = state_->store.release(id, attempt);
    forget(id, attempt);
    return released;
  }

  std::vector<store::Lease> held() override { return state_->store.leases_of(grader_); }

 private:
  // A lease of this process.
  struct Held {
    std::atomic<bool> is_news{true};  // the submission changed since the store was asked
    Clock::time_point renewed = {};
    bool cancel = false;
    Hub::Subscription news = {};
  };

  std::shared_ptr<Held> keep(const std::string& id, int attempt) {
    const std::lock_guard lock(mutex_);
    auto& held = held_[{id, attempt}];
    if (!held) {
      held = std::make_shared<Held>();
      // A plain pointer: the subscription is a part of what it points to, and the first to go.
      held->news = std::move(state_->held.subscribe(id, [h = held.get()] { h->is_news = true; })).value();
    }
    return held;
  }
  bool is_due(const Held& held) {
    const std::lock_guard lock(mutex_);
    return Clock::now() - held.renewed >= state_->options.lease / 3;
  }
  Hold hold_of(const Held& held) {
    const std::lock_guard lock(mutex_);
    return held.cancel ? Hold::cancel : Hold::kept;
  }
  void forget(const std::string& id, int attempt) {
    const std::lock_guard lock(mutex_);
    held_.erase({id, attempt});
  }

  const std::shared_ptr<State> state_;
  const std::string grader_;
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::shared_ptr<Held>> held_;
};

std::unique_ptr<grader::AttemptSource> Queue::source(const std::string& grader) {
  return std::make_unique<Source>(state_, grader);
}

}  // namespace kbench::queue
