// All threads of a program as fibers of one: who runs next, and what time it is, is drawn from a seed.
//
// The program under test is not changed for it. pthreads.cpp defines the functions of pthreads, of time and of chance
// that the C++ library and the program call (pthread_mutex_lock, pthread_cond_clockwait, clock_gettime, getrandom, …),
// so that std::thread, std::mutex, std::condition_variable, std::stop_token, sleep_for and steady_clock of everything
// linked into the executable end up here. The clock on the wall can be set while steady time goes on. A fiber can lose
// its turn at each of them and wherever `perhaps_yield` is called; a real thread loses it anywhere, so data races are
// for ThreadSanitizer, not for this. Time passes only when every fiber waits, and a little with each turn.
//
// `run` ends in one of two ways: the first fiber has returned, or the turn came at which the machine dies. Then all
// fibers are dropped as they are: no destructor runs, what they had in memory is lost to them (and leaked: run many in
// a process, then fork another).
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

namespace kbench::sim {

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // what must not happen, has

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  std::uint64_t below(std::uint64_t n) { return n < 2 ? 0 : engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  bool with(double probability) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability; }
  // Between 1 and `most`, each order of magnitude as likely as the next.
  std::int64_t magnitude(std::int64_t most);

 private:
  std::mt19937_64 engine_;
};

struct Plan {
  std::uint64_t dies_at_turn = 0;       // 0: it does not
  std::uint64_t turns_max = 3'000'000;  // more is a livelock
  double yields = 0.1;                  // how often a lock that is free costs the turn
};
enum class End : std::uint8_t { returned, died };
// Throws Failed: when every fiber waits for ever, or for too many turns. What a fiber other than the first throws ends
// the program, as in a thread; what the first throws comes out of here.
End run(Chance& chance, const Plan& plan, std::function<void()> first);

// From a fiber.
void perhaps_yield();
void sleep_ms(std::int64_t ms);
std::int64_t now_ms();   // steady; never goes back, also not from one run to the next
std::int64_t wall_ms();  // since the epoch, by a clock that may be wrong
void set_clock_by(std::int64_t ms);
void stall_ms(std::int64_t ms);  // the whole program stands still meanwhile
void die_within(std::uint64_t turns);
Chance& chance();
std::uint64_t trace();                            // a hash over all turns since then: equal for equal seeds
[[noreturn]] void fail(const std::string& what);  // the schedule ends there with Failed, whoever finds it

// Before the first run of a schedule: its time, not the same by both clocks, and a new trace.
void begin_at_ms(std::int64_t steady_ms, std::int64_t wall_ms);

}  // namespace kbench::sim
