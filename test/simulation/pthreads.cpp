// What the program calls in place of the C library's. A mutex's state lives in its own memory.
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/simulation/fibers.h"
#include "test/simulation/folder.h"
#include "test/simulation/turns.h"

using namespace kbench::sim;

namespace {

constexpr pthread_t kFirstThread = 1'000'000;  // + number: what pthread_self says in a fiber

int my_number() { return in_fiber() ? fiber_number() + 1 : 1'000'000; }  // as an owner of locks; 0: nobody
std::int64_t ns_of(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*entry)(void*), void* argument) noexcept {
  *thread = kFirstThread + static_cast<pthread_t>(start_thread(entry, argument));
  perhaps_yield();
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  void* const value = join_thread(static_cast<int>(thread - kFirstThread));
  if (result) *result = value;
  return 0;
}
int pthread_detach(pthread_t) noexcept { return 0; }

pthread_t pthread_self() noexcept { return in_fiber() ? kFirstThread + static_cast<pthread_t>(fiber_number()) : 1; }
int sched_yield() noexcept {
  if (in_fiber()) give_up_turn();
  return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  auto& m = mutex->__data;
  if (m.__lock == 0) {
    m.__lock = 1;
    m.__owner = my_number();
    count_lock(+1);
    return 0;
  }
  if ((m.__kind & 3) != PTHREAD_MUTEX_RECURSIVE_NP || m.__owner != my_number()) return EBUSY;
  ++m.__count;
  return 0;
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  yield_before_lock();
  while (pthread_mutex_trylock(mutex) != 0) {
    must_be_in_fiber();
    wait_for(mutex, kNever);
  }
  return 0;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  auto& m = mutex->__data;
  if (m.__count > 0) {
    --m.__count;
    return 0;
  }
  m.__lock = 0;
  m.__owner = 0;
  count_lock(-1);
  if (in_fiber()) wake(mutex, true);
  return 0;
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  auto& l = lock->__data;
  if (l.__readers != 0 || l.__cur_writer != 0) return EBUSY;
  l.__cur_writer = my_number();
  count_lock(+1);
  return 0;
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  auto& l = lock->__data;
  if (l.__cur_writer != 0) return EBUSY;
  ++l.__readers;
  count_lock(+1);
  return 0;
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  yield_before_lock();
  while (pthread_rwlock_trywrlock(lock) != 0) {
    must_be_in_fiber();
    wait_for(lock, kNever);
  }
  return 0;
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  yield_before_lock();
  while (pthread_rwlock_tryrdlock(lock) != 0) {
    must_be_in_fiber();
    wait_for(lock, kNever);
  }
  return 0;
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  auto& l = lock->__data;
  if (l.__cur_writer != 0) {
    l.__cur_writer = 0;
  } else {
    --l.__readers;
  }
  count_lock(-1);
  if (in_fiber()) wake(lock, true);
  return 0;
}

static bool is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

// No turn is lost between the unlock and the wait. It may wake for no reason, as it may in life.
static int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, std::int64_t until_ns, bool by_wall) {
  must_be_in_fiber();
  pthread_mutex_unlock(mutex);
  const bool for_no_reason = chance().one_in(64);
  wait_for(condition, for_no_reason ? now_ns() : until_ns, by_wall && !for_no_reason);
  const bool timed_out = (by_wall ? wall_ns() : now_ns()) >= until_ns;
  while (pthread_mutex_trylock(mutex) != 0) wait_for(mutex, kNever);
  return timed_out ? ETIMEDOUT : 0;
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  wait_on(condition, mutex, kNever, false);
  return 0;
}
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  return wait_on(condition, mutex, ns_of(*until), true);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  return wait_on(condition, mutex, ns_of(*until), is_wall(clock));
}
int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (in_fiber()) wake(condition, false);
  perhaps_yield();
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (in_fiber()) wake(condition, true);
  perhaps_yield();
  return 0;
}
int pthread_cond_destroy(pthread_cond_t*) noexcept { return 0; }

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const std::int64_t ns = is_wall(clock) ? wall_ns() : now_ns();
  time->tv_sec = ns / 1'000'000'000;
  time->tv_nsec = ns % 1'000'000'000;
  return 0;
}
int nanosleep(const timespec* time, timespec*) {
  must_be_in_fiber();
  wait_for(nullptr, now_ns() + ns_of(*time));
  return 0;
}

ssize_t getrandom(void* bytes, std::size_t size, unsigned) {
  for (std::size_t at = 0; at < size; ++at)
    static_cast<unsigned char*>(bytes)[at] = static_cast<unsigned char>(random_bits());
  return static_cast<ssize_t>(size);
}

// Semaphores and waits on atomics of the C++ library come by here, and the grader's openat2.
long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number != SYS_futex) {
    if (number == SYS_openat2 && fails_to_open(static_cast<int>(a[0]), reinterpret_cast<const char*>(a[1]),
                                               *reinterpret_cast<const open_how*>(a[2])))
      return -1;
    static const auto real = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  const auto* address = reinterpret_cast<const int*>(a[0]);
  const int operation = static_cast<int>(a[1]) & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  if (operation == FUTEX_WAKE) {
    if (in_fiber()) wake(address, true);
    return 1;
  }
  must_be_in_fiber();
  if (*address != static_cast<int>(a[2])) {
    errno = EAGAIN;
    return -1;
  }
  wait_for(address, a[3] == 0 ? kNever : now_ns() + 1'000'000'000);
  return 0;
}

}  // extern "C"
