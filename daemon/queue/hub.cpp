#include <mutex>
#include <unordered_map>
#include <utility>

#include "daemon/queue/queue.h"

namespace kbench::queue {

struct Hub::State {
  const int subscriptions_max;
  std::mutex mutex;
  std::unordered_multimap<std::string, std::pair<std::uint64_t, std::function<void()>>> wakes;  // by submission
  std::uint64_t next = 0;
};

Hub::Hub(int subscriptions_max) : state_(new State{subscriptions_max, {}, {}, 0}) {}

std::optional<Hub::Subscription> Hub::subscribe(const std::string& id, std::function<void()> wake) {
  const std::lock_guard lock(state_->mutex);
  if (static_cast<int>(state_->wakes.size()) >= state_->subscriptions_max) return {};
  const std::uint64_t number = ++state_->next;
  state_->wakes.emplace(id, std::pair{number, std::move(wake)});
  Subscription subscription;
  subscription.end_ = [state = state_, id, number] {
    const std::lock_guard ending(state->mutex);
    const auto [from, to] = state->wakes.equal_range(id);
    for (auto it = from; it != to; ++it) {
      if (it->second.first != number) continue;
      state->wakes.erase(it);
      return;
    }
  };
  return subscription;
}

void Hub::notify(const std::string& id) {
  const std::lock_guard lock(state_->mutex);
  const auto [from, to] = state_->wakes.equal_range(id);
  for (auto it = from; it != to; ++it) it->second.second();
}

int Hub::subscriptions() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->wakes.size());
}

Hub::Subscription::~Subscription() {
  if (end_) end_();
}

Hub::Subscription& Hub::Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  if (end_) end_();
  end_ = std::exchange(other.end_, nullptr);
  return *this;
}

}  // namespace kbench::queue
