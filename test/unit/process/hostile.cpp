// Submissions that misbehave, one a mode. kbench_args here: {long long n, mode, amount; float* x; float* y;}, y = 2 x.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <initializer_list>

#include "kbench/abi.h"
#include "test/unit/process/modes.h"

struct kbench_args {
  long long n, mode, amount;
  const float* x;
  float* y;
};

namespace {

double now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void busy(double us) {
  for (const double end = now_us() + us; now_us() < end;) {
  }
}

// On this thread's processor, whoever else wants it.
void busy_cpu(double us) {
  const auto used = [] {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
  };
  for (const double end = used() + us; used() < end;) {
  }
}

void compute(const kbench_args* a) {
  for (long long i = 0; i < a->n; ++i) a->y[i] = 2 * a->x[i];
}

// The worker's page to the verifier, found where the worker's library has mapped it.
uint32_t* answer_page() {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  uint32_t* page = nullptr;
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "kbench-from-worker")) page = reinterpret_cast<uint32_t*>(strtoull(line, nullptr, 16));
  if (maps) fclose(maps);
  return page;
}

template <class Body>
void in_background(Body body) {
  auto* copy = new Body(body);
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* arg) -> void* {
        (*static_cast<Body*>(arg))();
        return nullptr;
      },
      copy);
  pthread_detach(thread);
}

// A process nobody's child, in a session of its own.
template <class Body>
void daemonise(Body body) {
  if (fork() != 0) return;
  setsid();
  if (fork() == 0) body();
  _exit(0);
}

int attack_verifier() {
  const pid_t verifier = getppid();
  int won = 0;
  won += kill(verifier, SIGKILL) == 0;
  won += kill(verifier, SIGSTOP) == 0;
  won += ptrace(PTRACE_ATTACH, verifier, nullptr, nullptr) == 0;
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
  won += process_vm_readv(verifier, &here, 1, &there, 1, 0) >= 0;
  for (const char* file : {"mem", "environ", "maps", "fd", "cwd/.", "root/."}) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", verifier, file);
    const int fd = open(path, O_RDONLY);
    won += fd >= 0;
    if (fd >= 0) fprintf(stderr, "opened %s\n", path);
  }
  won += setuid(0) == 0;
  return won;
}

void arm_continue_timer(long long every_us) {
  signal(SIGCONT, [](int) {});  // a timer whose signal is ignored fires only once
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  const itimerspec when{{0, every_us * 1000}, {0, every_us * 1000}};
  timer_settime(timer, 0, &when, nullptr);
}

// Helpers that are continued from time to time, do 300 us of work and stop themselves again.
void run_in_slices(long long every_us) {
  for (int i = 0; i < 4; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    arm_continue_timer(every_us);
    for (;;) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
      while (std::chrono::steady_clock::now() < end) {
      }
      kill(getpid(), SIGSTOP);
    }
  }
}

// Kills whoever runs near our parent's number in its session, as fast as it can: the cleaner is reachable for a moment
// while it has our uid.
void hunt_cleaner() {
  const pid_t verifier = getppid();
  daemonise([=] {
    pid_t prey[64];
    int count = 0;
    for (pid_t pid = verifier + 1; pid < verifier + 4096 && count < 64; ++pid)
      if (getsid(pid) == getsid(verifier)) prey[count++] = pid;
    for (;;)
      for (int i = 0; i < count; ++i) kill(prey[i], SIGKILL);
  });
}

// A child that the OOM killer is to choose first takes `bytes_max` of memory (0: all there is). True when it was
// killed.
bool sacrifice_child(long long bytes_max) {
  const pid_t child = fork();
  if (child == 0) {
    if (FILE* score = fopen("/proc/self/oom_score_adj", "w")) {
      fputs("1000", score);
      fclose(score);
    }
    for (long long taken = 0; bytes_max == 0 || taken < bytes_max; taken += 1 << 20) {
      auto* block = static_cast<volatile char*>(malloc(1 << 20));
      for (int i = 0; block && i < 1 << 20; i += 4096) block[i] = 1;
    }
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

// As a pool does that starts a thread or a process for every piece of work and waits for it, all the time.
void keep_starting() {
  const auto threads_all_the_time = [] {
    pthread_t threads[32];
    for (;;) {
      for (pthread_t& each : threads) pthread_create(&each, nullptr, [](void* none) { return none; }, nullptr);
      for (const pthread_t each : threads) pthread_join(each, nullptr);
    }
  };
  for (int i = 0; i < 4; ++i) in_background(threads_all_the_time);
  in_background([] {
    for (;;) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    }
  });
}

float head_start_seen;

// A thread that waits for the inputs to change and starts without being told.
void take_head_starts(const kbench_args args) {
  const float first = args.x[0];
  in_background([args, first] {
    for (float last = first;;) {
      float now = 0;
      __atomic_load(args.x, &now, __ATOMIC_ACQUIRE);
      if (now == last) continue;
      last = now;
      busy_cpu(static_cast<double>(args.amount));
      __atomic_store(&head_start_seen, &last, __ATOMIC_RELEASE);
    }
  });
}

}  // namespace

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  const kbench_args args = *a;
  switch (static_cast<Mode>(a->mode)) {
    case Mode::honest:
      break;
    case Mode::busy:
      busy_cpu(static_cast<double>(a->amount));
      break;
    case Mode::early_done:
      in_background([args] {
        busy(static_cast<double>(args.amount));
        compute(&args);
      });
      return 0;
    case Mode::head_start: {
      static bool started = false;
      float seen = 0;
      if (!started) take_head_starts(args);
      for (float wanted = a->x[0];
           started && (__atomic_load(&head_start_seen, &seen, __ATOMIC_ACQUIRE), seen != wanted);) {
      }
      started = true;
      break;
    }
    case Mode::late_write:
      compute(a);
      in_background([args] {
        busy(static_cast<double>(args.amount));
        args.y[0] += 1;
      });
      return 0;
    case Mode::garbage_status: {
      uint32_t* page = answer_page();
      memset(page + 1, 0xa5, 500);
      __atomic_store_n(page, page[0] + 1, __ATOMIC_RELEASE);
      for (;;) pause();
    }
    case Mode::wrong_epoch:
      __atomic_store_n(answer_page(), 12345u, __ATOMIC_RELEASE);
      for (;;) pause();
    case Mode::done_before_go: {
      uint32_t* page = answer_page();
      in_background([page] {
        busy(20'000);
        __atomic_store_n(page, page[0] + 1, __ATOMIC_RELEASE);
      });
      break;
    }
    case Mode::fuzz_page: {
      uint32_t* page = answer_page();
      in_background([page] {
        uint32_t state = 1;
        for (;;) {
          state = state * 1664525 + 1013904223;
          page[1 + (state >> 8) % 1000] = state;  // all but the epoch
        }
      });
      break;
    }
    case Mode::exits:
      _exit(7);
    case Mode::aborts:
      abort();
    case Mode::hangs:
      for (;;) pause();
    case Mode::stops_itself:
      raise(SIGSTOP);
      break;
    case Mode::floods: {
      char block[4096];
      memset(block, '\x1b', sizeof block);
      for (long long i = 0; i < a->amount; i += static_cast<long long>(sizeof block))
        if (write(1, block, sizeof block) < 0) return 1;
      break;
    }
    case Mode::forks:
      for (int i = 0; i < 5; ++i)
        daemonise([] {
          for (;;) busy(1000);
        });
      break;
    case Mode::writes_guards:
      compute(a);
      a->y[-1] = 1;
      a->y[a->n] = 1;
      return 0;
    case Mode::attacks_verifier:
      return attack_verifier();
    case Mode::continues_itself:
      compute(a);
      arm_continue_timer(a->amount);
      return 0;
    case Mode::runs_in_slices:
      run_in_slices(a->amount);
      break;
    case Mode::hunts_cleaner:
      hunt_cleaner();
      break;
    case Mode::refuses:
      return 5;
    case Mode::eats_memory:
      for (;;) {
        auto* block = static_cast<volatile char*>(malloc(1 << 20));
        for (int i = 0; block && i < 1 << 20; i += 4096) block[i] = 1;
      }
    case Mode::sacrifices:
      if (sacrifice_child(args.amount) != (args.amount == 0)) return 1;
      break;
    case Mode::pools:
      keep_starting();
      break;
    case Mode::litters: {
      char command[512];
      snprintf(command, sizeof command,
               "cd %s && mkdir -p a/b/c && echo x > a/b/c/d && mkdir shut && echo y > shut/z && chmod 000 shut && ln "
               "-s / out && mkfifo f "
               "&& ln -s nowhere dangling && d=deep; for i in $(seq 300); do mkdir -p $d && cd -P $d; done",
               getenv("LITTER"));
      if (system(command) != 0) return 9;
      break;
    }
    case Mode::leaks: {
      // What a process could use: descriptors above ours, environment of the verifier.
      int extra = 0;
      DIR* fds = opendir("/proc/self/fd");
      while (const dirent* entry = readdir(fds))
        if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(fds)) {
          ++extra;
          fprintf(stderr, "fd %s\n", entry->d_name);
        }
      closedir(fds);
      if (getenv("KBENCH_TEST_SECRET")) ++extra;
      return extra;
    }
  }
  compute(a);
  return 0;
}
