#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "daemon/gpu/gpu.h"

using namespace kbench::gpu;

namespace {

std::vector<Slot> three() {
  SlotOptions options;
  options.cpu_slots = {"0-1"};
  options.gpu_cpusets = {{"GPU-a", "2"}, {"GPU-b", "3"}};
  return make_slots(options, {{"GPU-a", "H200", "580", 0, 0}, {"GPU-b", "H100", "580", 1, 0}});
}

}  // namespace

TEST_CASE("slots have uids of their own") {
  SlotOptions options;
  options.cpu_slots = {"0", "1"};
  options.gpus_excluded = {"GPU-b"};
  const auto slots = make_slots(options, {{"GPU-a", "", "", 0, 0}, {"GPU-b", "", "", 1, 0}});
  REQUIRE(slots.size() == 3);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    CHECK(slots[i].index == static_cast<int>(i));
    CHECK(slots[i].uid_base == 200'000 + 32 * i);
  }
  CHECK(slots[2].device == "cuda");
  options.gpus = false;
  CHECK(make_slots(options, {{"GPU-a", "", "", 0, 0}}).size() == 2);
}

TEST_CASE("slots are held one at a time, by device, count and model") {
  Slots slots(three());
  auto cpu = slots.acquire("cpu", 0, "", "s-1", {});
  REQUIRE(cpu);
  CHECK(cpu->cpuset() == "0-1");
  CHECK(cpu->gpus().empty());
  {
    auto h100 = slots.acquire("cuda", 1, "H100", "s-2", {});
    CHECK(h100->gpus().at(0).uuid == "GPU-b");
    CHECK(slots.view()[2].state == SlotState::busy);
    CHECK(slots.view()[2].holder == "s-2");
  }
  auto both = slots.acquire("cuda", 2, "", "s-3", {});
  CHECK(both->gpus().size() == 2);
  CHECK(both->cpuset() == "2,3");
  CHECK_THROWS_AS(slots.acquire("cuda", 3, "", "s-4", {}), NoSlot);
  CHECK_THROWS_AS(slots.acquire("cuda", 1, "A100", "s-4", {}), NoSlot);
}

TEST_CASE("a waiter gets a slot when it is free, or leaves when stopped") {
  Slots slots(three());
  std::optional<Slots::Held> held = slots.acquire("cpu", 0, "", "s-1", {});
  std::atomic<bool> got = false;
  std::jthread waiter([&] { got = slots.acquire("cpu", 0, "", "s-2", {}).has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(got);
  held.reset();
  waiter.join();
  CHECK(got);
  held.emplace(*slots.acquire("cpu", 0, "", "s-1", {}));
  std::stop_source stop;
  auto stopped =
      std::async(std::launch::async, [&] { return slots.acquire("cpu", 0, "", "s-2", stop.get_token()).has_value(); });
  stop.request_stop();
  CHECK_FALSE(stopped.get());
}

TEST_CASE("quarantine: with a reason, out of reach, also while busy, until released") {
  Slots slots(three());
  {
    auto held = slots.acquire("cuda", 1, "H200", "s-1", {});
    slots.quarantine_gpu("GPU-a", "xid 79");
    slots.quarantine_gpu("GPU-a", "xid 48");
  }
  CHECK(slots.view()[1].state == SlotState::quarantined);
  CHECK(slots.view()[1].reason == "xid 79");
  CHECK(slots.usable("cuda") == 1);
  CHECK(slots.models() == std::vector<std::string>{"H100"});
  CHECK_THROWS_AS(slots.acquire("cuda", 1, "H200", "s-2", {}), NoSlot);
  slots.release_quarantine(1);
  CHECK(slots.acquire("cuda", 1, "H200", "s-2", {}));
  slots.quarantine_gpu("GPU-unknown", "x");
}

TEST_CASE("several GPUs are had of the model that there is most of, all at once or none") {
  CHECK(Slots({}).commonest().count == 0);
  Slots slots(make_slots({}, {{"GPU-a", "H100", "", 0, 0},
                              {"GPU-b", "H200", "", 1, 0},
                              {"GPU-c", "H200", "", 2, 0},
                              {"GPU-d", "H200", "", 3, 0}}));
  CHECK(slots.commonest().model == "H200");
  CHECK(slots.commonest().count == 3);
  {
    const auto one = slots.acquire("cuda", 1, "H200", "s-1", {});
    const auto two = slots.acquire("cuda", 2, "H200", "s-2", {});
    std::stop_source stop;
    auto third = std::async(std::launch::async,
                            [&] { return slots.acquire("cuda", 2, "H200", "s-3", stop.get_token()).has_value(); });
    CHECK(third.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
    CHECK(slots.view()[0].state == SlotState::ready);  // the H100 is no second one
    stop.request_stop();
    CHECK_FALSE(third.get());
  }
  slots.quarantine(2, "probe");
  slots.quarantine(3, "probe");
  CHECK(slots.commonest().count == 1);
  CHECK_THROWS_AS(slots.acquire("cuda", 2, "H200", "s-4", {}), NoSlot);
}

TEST_CASE("two that want two of two GPUs are served one behind the other") {
  Slots slots(make_slots({}, {{"GPU-a", "H200", "", 0, 0}, {"GPU-b", "H200", "", 1, 0}}));
  std::atomic<int> together = 0, most = 0, served = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        const auto held = slots.acquire("cuda", 2, "H200", "s", {});
        const int now = ++together;
        if (now > most) most = now;
        --together;
        ++served;
      }
    });
  threads.clear();
  CHECK(served == 200);
  CHECK(most == 1);
}

TEST_CASE("a waiter learns that quarantine left nothing for it") {
  Slots slots(three());
  auto held = slots.acquire("cuda", 2, "", "s-1", {});
  std::atomic<bool> told = false;
  std::jthread waiter([&] {
    try {
      slots.acquire("cuda", 2, "", "s-2", {});
    } catch (const NoSlot&) {
      told = true;
    }
  });
  slots.quarantine(2, "probe");
  waiter.join();
  CHECK(told);
}

TEST_CASE("two GPU faults in a row are a quarantine, one between successes is not") {
  Slots slots(three());
  const auto grade = [&](bool fault) {
    auto held = slots.acquire("cuda", 1, "H200", "s", {});
    slots.judge(*held, fault, "device: no context");
  };
  grade(true);
  grade(false);
  grade(true);
  CHECK(slots.usable("cuda") == 2);
  grade(true);
  CHECK(slots.view()[1].state == SlotState::quarantined);
  CHECK(slots.view()[1].reason == "device: no context");
}

TEST_CASE("many threads on few slots: never two holders of one") {
  Slots slots(three());
  std::array<std::atomic<int>, 3> users{};
  std::atomic<bool> doubled = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k) {
        auto held = slots.acquire(i % 3 ? "cuda" : "cpu", 1 + (i == 5), "", "s", {});
        for (const Slot& slot : held->slots())
          if (++users[static_cast<std::size_t>(slot.index)] != 1) doubled = true;
        for (const Slot& slot : held->slots()) --users[static_cast<std::size_t>(slot.index)];
      }
    });
  threads.clear();
  CHECK_FALSE(doubled);
}

TEST_CASE("who came first is served first, one that wants several too, and another device does not wait for it") {
  Slots slots(three());
  std::vector<Slots::Held> held;
  held.push_back(*slots.acquire("cuda", 1, "H100", "s-0", {}));
  std::mutex mutex;
  std::vector<int> served;
  std::vector<std::jthread> waiters;
  const auto wait_as = [&](int number, int count) {
    waiters.emplace_back([&, number, count] {
      // One of them at a time: there is one H100, and it is among any two.
      const auto mine = slots.acquire("cuda", count, count == 1 ? "H100" : "", "s", {});
      const std::lock_guard lock(mutex);
      served.push_back(number);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that it waits before the next one comes
  };
  wait_as(1, 2);  // one GPU is free, and is left for it
  for (int number = 2; number < 12; ++number) wait_as(number, 1 + (number == 7));
  {
    const std::lock_guard lock(mutex);
    CHECK(served.empty());
  }
  CHECK(slots.acquire("cpu", 0, "", "s", {}));
  held.clear();
  waiters.clear();
  CHECK(served == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("what was set aside for a waiter that leaves fits the next") {
  Slots slots(three());
  auto held = slots.acquire("cuda", 1, "", "s-0", {});
  std::stop_source stop;
  auto first =
      std::async(std::launch::async, [&] { return slots.acquire("cuda", 2, "", "s-1", stop.get_token()).has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  auto second = std::async(std::launch::async, [&] { return slots.acquire("cuda", 1, "", "s-2", {}).has_value(); });
  CHECK(second.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  stop.request_stop();
  CHECK_FALSE(first.get());
  CHECK(second.get());
}

TEST_CASE("submitters take turns; of one submitter's the first comes first") {
  Slots slots(three());
  auto held = slots.acquire("cpu", 0, "", "s-0", {});
  std::mutex mutex;
  std::vector<std::string> served;
  std::vector<std::jthread> waiters;
  const std::vector<std::string> come = {"a", "a", "a", "b", "a", "b", "c"};
  for (const std::string& submitter : come) {
    waiters.emplace_back([&] {
      const auto mine = slots.acquire("cpu", 0, "", "s", {}, submitter);
      const std::lock_guard lock(mutex);
      served.push_back(submitter);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that it waits before the next one comes
  }
  held.reset();
  waiters.clear();
  CHECK(served == std::vector<std::string>{"a", "b", "c", "a", "b", "a", "a"});
}
