#include "test/simulation/fibers.h"

#include <cxxabi.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "test/simulation/turns.h"

namespace kbench::sim {

namespace {

constexpr std::size_t kStackBytes = 512 * 1024;
constexpr std::uint64_t kNoTurns = 14695981039346656037u;

struct CxaGlobals {  // of the thread: exceptions being handled. Each fiber has its own.
  void* caught;
  unsigned int uncaught;
};

struct Fiber {
  int number = 0;
  ucontext_t context{};
  void* stack = nullptr;
  std::function<void()> body;
  void* (*entry)(void*) = nullptr;  // of a thread
  void* argument = nullptr;
  void* result = nullptr;
  CxaGlobals exceptions{};
  const void* waits_for = nullptr;  // an address; null: runnable, or asleep
  std::int64_t wakes_at_ns = 0;     // kNever: only when woken; in the past: runnable
  bool by_wall = false;             // it moves when the clock is set
  bool woken = false;               // not by time
  bool done = false;
  int locks = 0;  // held
};

struct World {
  Chance* chance = nullptr;
  Plan plan;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber* current = nullptr;  // null: the scheduler, or no run at all
  ucontext_t scheduler{};
  CxaGlobals exceptions{};
  std::int64_t now_ns = 0, wall_ahead_ns = 0;
  std::uint64_t turns = 0, trace = kNoTurns;
  std::string failure;
  std::exception_ptr thrown;  // by the first fiber
  std::vector<void*> free_stacks;
};
World world;

CxaGlobals* exceptions_now() { return reinterpret_cast<CxaGlobals*>(abi::__cxa_get_globals()); }

void note(std::uint64_t what) { world.trace = (world.trace ^ what) * 1099511628211u; }

void enter_fiber() {
  Fiber& me = *world.current;
  if (me.entry) {
    me.result = me.entry(me.argument);  // std::thread's: an exception ends the program there
  } else {
    try {
      me.body();
    } catch (...) {
      world.thrown = std::current_exception();
    }
  }
  me.done = true;
  for (const auto& other : world.fibers)
    if (other->waits_for == &me) other->woken = true;
  give_up_turn();
  std::abort();
}

Fiber& make_fiber() {
  auto fiber = std::make_unique<Fiber>();
  fiber->number = static_cast<int>(world.fibers.size());
  if (world.free_stacks.empty()) {
    void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    ::mprotect(stack, 4096, PROT_NONE);
    world.free_stacks.push_back(stack);
  }
  fiber->stack = world.free_stacks.back();
  world.free_stacks.pop_back();
  ::getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  ::makecontext(&fiber->context, enter_fiber, 0);
  world.fibers.push_back(std::move(fiber));
  return *world.fibers.back();
}

void resume(Fiber& fiber) {
  fiber.waits_for = nullptr;
  world.current = &fiber;
  world.exceptions = *exceptions_now();
  *exceptions_now() = fiber.exceptions;
  ::swapcontext(&world.scheduler, &fiber.context);
  world.current = nullptr;
}

bool is_runnable(const Fiber& fiber) { return !fiber.done && (fiber.woken || fiber.wakes_at_ns <= world.now_ns); }

// Null: nobody will ever run again.
Fiber* next_fiber() {
  std::vector<Fiber*> able;
  std::int64_t soonest = kNever;
  for (const auto& fiber : world.fibers) {
    if (is_runnable(*fiber)) able.push_back(fiber.get());
    if (!fiber->done && !fiber->woken) soonest = std::min(soonest, std::max(fiber->wakes_at_ns, world.now_ns));
  }
  if (able.empty()) {
    if (soonest == kNever) return nullptr;
    world.now_ns = soonest;
    return next_fiber();
  }
  return able[world.chance->below(able.size())];
}

}  // namespace

void give_up_turn() {
  Fiber& me = *world.current;
  const int error = errno;
  me.exceptions = *exceptions_now();
  *exceptions_now() = world.exceptions;
  ::swapcontext(&me.context, &world.scheduler);
  errno = error;
}

bool wait_for(const void* address, std::int64_t until_ns, bool by_wall) {
  Fiber& me = *world.current;
  me.waits_for = address;
  me.by_wall = by_wall && until_ns != kNever;
  me.wakes_at_ns = me.by_wall ? until_ns - world.wall_ahead_ns : until_ns;
  me.woken = false;
  give_up_turn();
  const bool woken = me.woken;
  me.woken = me.by_wall = false;
  me.wakes_at_ns = 0;
  return woken;
}

void wake(const void* address, bool all) {
  std::vector<Fiber*> waiting;
  for (const auto& fiber : world.fibers)
    if (!fiber->done && !fiber->woken && fiber->waits_for == address) waiting.push_back(fiber.get());
  if (waiting.empty()) return;
  if (!all) waiting = {waiting[world.chance->below(waiting.size())]};
  for (Fiber* fiber : waiting) fiber->woken = true;
}

void yield_before_lock() {
  if (world.current && world.current->locks == 0) perhaps_yield();
}
void count_lock(int by) {
  if (world.current) world.current->locks += by;
}

bool in_fiber() { return world.current != nullptr; }
int fiber_number() { return world.current ? world.current->number : -1; }
std::int64_t now_ns() { return world.now_ns; }
std::int64_t wall_ns() { return world.now_ns + world.wall_ahead_ns; }
std::uint64_t random_bits() { return world.chance ? world.chance->bits() : 4; }

void must_be_in_fiber() {
  if (world.current) return;
  std::fputs("simulation: something would block outside of a fiber\n", stderr);
  std::abort();
}

int start_thread(void* (*entry)(void*), void* argument) {
  must_be_in_fiber();
  Fiber& fiber = make_fiber();
  fiber.entry = entry;
  fiber.argument = argument;
  return fiber.number;
}

void* join_thread(int number) {
  must_be_in_fiber();
  Fiber& fiber = *world.fibers.at(static_cast<std::size_t>(number));
  while (!fiber.done) wait_for(&fiber, kNever);
  return fiber.result;
}

std::int64_t Chance::magnitude(std::int64_t most) {
  int bits = 0;
  while ((std::int64_t{1} << bits) < most) ++bits;
  const auto top = std::int64_t{1} << below(static_cast<std::uint64_t>(bits) + 1);
  return std::min<std::int64_t>(most, 1 + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(top))));
}

End run(Chance& chance, const Plan& plan, std::function<void()> first) {
  __libc_single_threaded = 0;  // the C++ library leaves out what it needs no other thread for
  world.chance = &chance;
  world.plan = plan;
  world.turns = 0;
  world.failure.clear();
  world.thrown = nullptr;
  world.fibers.clear();
  make_fiber().body = std::move(first);
  End end = End::returned;
  while (!world.fibers.front()->done) {
    if (++world.turns == world.plan.dies_at_turn) {
      end = End::died;
      break;
    }
    Fiber* fiber = next_fiber();
    if (!fiber) throw Failed("every thread waits for ever");
    if (world.turns > plan.turns_max) throw Failed("no end after " + std::to_string(plan.turns_max) + " turns");
    world.now_ns += static_cast<std::int64_t>(1'000 + chance.below(20'000));
    note(static_cast<std::uint64_t>(fiber->number) + (world.turns << 8));
    resume(*fiber);
    if (!world.failure.empty()) throw Failed(world.failure);
  }
  // Stacks of those that ended are used again; the others' are left as they are, like the memory they hold on to.
  for (const auto& fiber : world.fibers)
    if (fiber->done) world.free_stacks.push_back(fiber->stack);
  if (end == End::died)
    for (auto& fiber : world.fibers) static_cast<void>(fiber.release());
  world.fibers.clear();
  if (world.thrown) std::rethrow_exception(std::exchange(world.thrown, nullptr));
  return end;
}

void perhaps_yield() {
  if (!world.current || !world.chance->with(world.plan.yields)) return;
  give_up_turn();
}

void sleep_ms(std::int64_t ms) {
  must_be_in_fiber();
  wait_for(nullptr, world.now_ns + ms * 1'000'000);
}

std::int64_t now_ms() { return world.now_ns / 1'000'000; }
std::int64_t wall_ms() { return wall_ns() / 1'000'000; }
void set_clock_by(std::int64_t ms) {
  world.wall_ahead_ns += ms * 1'000'000;
  for (const auto& fiber : world.fibers)
    if (fiber->by_wall) fiber->wakes_at_ns -= ms * 1'000'000;
}
void begin_at_ms(std::int64_t steady_ms, std::int64_t wall_ms) {
  world.now_ns = steady_ms * 1'000'000;
  world.wall_ahead_ns = (wall_ms - steady_ms) * 1'000'000;
  world.trace = kNoTurns;
}
void stall_ms(std::int64_t ms) { world.now_ns += ms * 1'000'000; }
void die_within(std::uint64_t turns) { world.plan.dies_at_turn = world.turns + 1 + world.chance->below(turns); }
Chance& chance() { return *world.chance; }
std::uint64_t trace() { return world.trace; }

void fail(const std::string& what) {
  if (!world.current) throw Failed(what);
  world.failure = what;
  for (;;) give_up_turn();
}

}  // namespace kbench::sim
