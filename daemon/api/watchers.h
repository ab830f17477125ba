// Who waits for a change of which submission.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kbench::api {

class Watchers : public std::enable_shared_from_this<Watchers> {
 public:
  // `wake` is called on every change until the place is destroyed; it must not block, nor call back in here.
  [[nodiscard]] std::shared_ptr<void> watch(const std::string& id, std::function<void()> wake) {
    const std::scoped_lock lock(mutex_);
    const auto at = all_.emplace(id, std::move(wake));
    return {nullptr, [self = shared_from_this(), at](void*) {
              const std::scoped_lock inner(self->mutex_);
              self->all_.erase(at);
            }};
  }
  void changed(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    const auto [begin, end] = all_.equal_range(id);
    for (auto it = begin; it != end; ++it) it->second();
  }

 private:
  std::mutex mutex_;
  std::multimap<std::string, std::function<void()>> all_;
};

}  // namespace kbench::api
