#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "daemon/queue/queue.h"

using namespace kbench::queue;

TEST_CASE("news reach those who watch that submission, until they stop") {
  Hub hub(10);
  int a1 = 0, a2 = 0, b = 0;
  auto first = hub.subscribe("a", [&] { ++a1; });
  {
    const auto second = hub.subscribe("a", [&] { ++a2; });
    const auto other = hub.subscribe("b", [&] { ++b; });
    hub.notify("a");
    hub.notify("c");
  }
  hub.notify("a");
  hub.notify("b");
  CHECK(a1 == 2);
  CHECK(a2 == 1);
  CHECK(b == 0);
  Hub::Subscription moved = std::move(*first);
  first.reset();
  hub.notify("a");
  CHECK(a1 == 3);
  moved = {};
  hub.notify("a");
  CHECK(a1 == 3);
  CHECK(hub.subscriptions() == 0);
}

TEST_CASE("subscriptions are bounded at the edge") {
  Hub hub(2);
  auto a = hub.subscribe("a", [] {});
  auto b = hub.subscribe("a", [] {});
  CHECK(b);
  CHECK_FALSE(hub.subscribe("a", [] {}));
  a.reset();
  CHECK(hub.subscribe("b", [] {}));
}

TEST_CASE("a subscription that is gone is not woken, whatever else goes on; it may outlive the hub") {
  auto hub = std::make_unique<Hub>(1000);
  std::atomic<bool> stop{false};
  std::thread notifier([&] {
    while (!stop) hub->notify("a");
  });
  for (int i = 0; i < 500; ++i) {
    auto alive = std::make_unique<int>(0);
    const auto subscription = hub->subscribe("a", [&] { ++*alive; });
    std::this_thread::yield();
  }
  stop = true;
  notifier.join();
  const auto last = hub->subscribe("a", [] {});
  hub.reset();
}
