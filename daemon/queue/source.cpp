// A grader's view of the queue in the same process.
#include <map>

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
        note_renewed(lease->submission.id, lease->attempt);
        return lease;
      }
      std::unique_lock lock(state_->mutex);
      if (!state_->changed.wait_until(lock, deadline, [&] { return state_->stopping || state_->claimable != seen; }))
        return {};
    }
  }

  Hold renew(const std::string& id, int attempt) override {
    if (is_renewal_due(id, attempt)) {
      if (!state_->store.renew(id, attempt, state_->options.lease)) return lost(id, attempt);
      note_renewed(id, attempt);
    }
    const auto now = state_->store.get(id);
    if (!now || now->attempt != attempt || now->state == store::State::queued || is_final(now->state))
      return lost(id, attempt);
    return now->cancel_requested ? Hold::cancel : Hold::kept;
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
  using Attempt = std::pair<std::string, int>;

  bool is_renewal_due(const std::string& id, int attempt) {
    const std::lock_guard lock(mutex_);
    const auto known = renewed_.find({id, attempt});
    return known == renewed_.end() || Clock::now() - known->second >= state_->options.lease / 3;
  }
  void note_renewed(const std::string& id, int attempt) {
    const std::lock_guard lock(mutex_);
    renewed_[{id, attempt}] = Clock::now();
  }
  void forget(const std::string& id, int attempt) {
    const std::lock_guard lock(mutex_);
    renewed_.erase({id, attempt});
  }
  Hold lost(const std::string& id, int attempt) {
    forget(id, attempt);
    return Hold::lost;
  }

  const std::shared_ptr<State> state_;
  const std::string grader_;
  std::mutex mutex_;
  std::map<Attempt, Clock::time_point> renewed_;  // by this process; no more than it holds leases
};

std::unique_ptr<grader::AttemptSource> Queue::source(const std::string& grader) {
  return std::make_unique<Source>(state_, grader);
}

}  // namespace kbench::queue
