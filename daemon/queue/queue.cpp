#include "daemon/queue/queue.h"

#include <spdlog/spdlog.h>

#include "daemon/queue/state.h"

namespace kbench::queue {

namespace {

Admitted admitted(store::Submitted how) {
  switch (how) {
    case store::Submitted::created:
      return Admitted::created;
    case store::Submitted::replayed:
      return Admitted::replayed;
    case store::Submitted::key_conflict:
      return Admitted::key_conflict;
    case store::Submitted::queue_full:
      break;
  }
  return Admitted::queue_full;
}

}  // namespace

// The store may outlive the queue, so that its callbacks hold on to what they touch.
Queue::Queue(store::Store& store, const Options& options) : state_(std::make_shared<State>(store, options)) {
  store.on_change([state = std::weak_ptr(state_)](const std::string& id) {
    const auto s = state.lock();
    if (!s) return;
    s->held.notify(id);
    s->hub.notify(id);
  });
  store.on_claimable([state = std::weak_ptr(state_)] {
    const auto s = state.lock();
    if (!s) return;
    {
      const std::lock_guard lock(s->mutex);
      ++s->claimable;
    }
    s->changed.notify_all();
  });
  state_->sweeper = std::thread([s = state_.get()] { s->sweep(); });
}

Queue::~Queue() {
  stop();
  state_->sweeper.join();
}

void Queue::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
}

void Queue::State::sweep() {
  do {
    std::string cause;
    try {
      if (const int expired = store.expire_leases(options.attempts_max); expired > 0)
        spdlog::warn("{} leases expired", expired);
    } catch (const store::StoreFault& e) {
      cause = e.what();
    }
    const std::lock_guard lock(mutex);
    if (!cause.empty() && fault.empty()) spdlog::error("the store is out of order: {}", cause);
    if (cause.empty() && !fault.empty()) spdlog::info("the store is in order again");
    fault = cause;
  } while (pause(options.sweep));
}

Admission Queue::submit(const store::NewSubmission& submission) {
  const std::pair key{submission.submitter, submission.idempotency_key};
  const bool has_key = !submission.idempotency_key.empty();
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) return {Admitted::stopping, {}};
    if (has_key && !state_->keys.insert(key).second) return {Admitted::key_in_flight, {}};
  }
  const auto done = [&](void*) {
    const std::lock_guard lock(state_->mutex);
    if (has_key) state_->keys.erase(key);
  };
  const std::unique_ptr<void, decltype(done)> answered(this, done);
  store::SubmitResult result = state_->store.submit(submission, state_->options.depth_max);
  return {admitted(result.how), std::move(result.submission)};
}

Hub& Queue::hub() { return state_->hub; }
std::int64_t Queue::depth_max() const { return state_->options.depth_max; }

std::string Queue::fault() const {
  const std::lock_guard lock(state_->mutex);
  return state_->fault;
}

}  // namespace kbench::queue
