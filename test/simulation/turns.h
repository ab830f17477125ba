// What pthreads.cpp needs of the scheduler. Internal to test/simulation.
#pragma once

#include <cstdint>

namespace kbench::sim {

inline constexpr std::int64_t kNever = INT64_MAX;

bool in_fiber();
void must_be_in_fiber();  // ends the program: something would block where nothing else can run
int fiber_number();       // of the one whose turn it is; 0: the first; -1: none
std::int64_t now_ns();    // steady
std::int64_t wall_ns();   // what a clock on the wall shows
std::uint64_t random_bits();
void give_up_turn();
// Waits to be woken by `wake` of that address, at most until then. True when it was. `by_wall`: until the clock on the
// wall shows so much, however it is set meanwhile.
bool wait_for(const void* address, std::int64_t until_ns, bool by_wall = false);
void wake(const void* address, bool all);
// One that holds a lock keeps its turn here: a library's own locks (OpenSSL's) must not die held, they are the
// process's.
void yield_before_lock();
void count_lock(int by);
int start_thread(void* (*entry)(void*), void* argument);  // its number
void* join_thread(int number);

}  // namespace kbench::sim
