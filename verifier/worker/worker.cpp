// No exceptions, no allocation, nothing of libstdc++ at run time: this is loaded beside whatever the submission brings.
#include "verifier/worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "verifier/protocol/futex.h"
#include "verifier/protocol/packet.h"
#include "verifier/worker/kernels.h"
#include "verifier/worker/worker_cuda.h"

using namespace kbench;
using protocol::Status;

struct kbench_worker {
  protocol::Setup setup;
  const protocol::ToWorker* to;
  protocol::FromWorker* from;
  char* tensors[protocol::kTensorsMax];
  void* streams[protocol::kGpusMax];
  std::uint32_t epoch;
  std::uint64_t slots[protocol::kSlotsMax];
  std::uint32_t shape;
  double started_us;
};

namespace {

constexpr double kSpinUsCpu =
    100;  // then asleep: on the cpu device a processor spinning is one less for the submission
constexpr double kSpinUsCuda = 2e6;   // a kernel writes the word there, and nobody wakes for it
constexpr long kNapNs = 100'000'000;  // cpu: the verifier wakes
constexpr long kNapNsCuda = 50'000;

kbench_worker the_worker;
char error_text[256];

double now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void say(kbench_worker* w, std::uint32_t epoch, Status status, int code, double us, const char* text) {
  w->from->code = code;
  w->from->call_us = static_cast<float>(us);
  memset(w->from->text, 0, sizeof w->from->text);
  if (text) strncpy(w->from->text, text, sizeof w->from->text - 1);
  __atomic_store_n(&w->from->status, static_cast<std::uint32_t>(status), __ATOMIC_RELEASE);
  w->from->done.store(epoch, std::memory_order_release);
  protocol::futex_wake(&w->from->done);
}

kbench_worker* fail(kbench_worker* w, int code, const char* what, const char* why) {
  snprintf(error_text, sizeof error_text, "%s: %s", what, why);
  if (w->from) say(w, 0, Status::failed, code, 0, error_text);
  return nullptr;
}

template <class T>
T* map_page(int fd, int protection) {
  void* page = mmap(nullptr, protocol::kPageBytes, protection, MAP_SHARED, fd, 0);
  return page == MAP_FAILED ? nullptr : static_cast<T*>(page);
}

bool map_tensor(kbench_worker* w, std::uint32_t index, int fd) {
  const protocol::SetupTensor& tensor = w->setup.tensors[index];
  void* base = nullptr;
  if (w->setup.device == 1) {
    const int result = worker::cuda_map(fd, tensor.mapped_bytes, &base);
    if (result != 0) return fail(w, result, "mapping a tensor", worker::cuda_error_name(result)) != nullptr;
  } else {
    base = mmap(nullptr, tensor.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (base == MAP_FAILED) return fail(w, errno, "mapping a tensor", strerror(errno)) != nullptr;
  }
  w->tensors[index] = static_cast<char*>(base) + tensor.tensor_offset;
  return true;
}

void build_args(kbench_worker* w) {
  const protocol::SetupShape& shape = w->setup.shapes[w->shape];
  for (std::uint32_t i = 0; i < shape.slot_count; ++i)
    w->slots[i] =
        i < shape.first_pointer ? shape.slots[i] : reinterpret_cast<std::uint64_t>(w->tensors[shape.slots[i]]);
}

void finish(kbench_worker* w, int code, const char* text) {
  double us = now_us() - w->started_us;
  if (w->setup.device == 1 && code == 0) {
    worker::cuda_mark(1, w->streams[0]);
    const int result = worker::cuda_synchronize();
    if (result != 0) return say(w, w->epoch, Status::failed, result, 0, worker::cuda_error_name(result));
    us = worker::cuda_marked_us();
  }
  if (w->setup.observed && code == 0) {
    char names[sizeof w->from->text];
    const int kernels = worker::seen_kernels(names, sizeof names);
    if (kernels < 0) return say(w, w->epoch, Status::failed, 1, 0, "counting kernels: CUPTI no longer tells");
    return say(w, w->epoch, Status::done, kernels, us, names);
  }
  say(w, w->epoch, code == 0 ? Status::done : Status::refused, code, us, text);
}

}  // namespace

extern "C" {

const char* kbench_worker_error(void) { return error_text; }

kbench_worker* kbench_worker_open(int socket) {
  kbench_worker* w = &the_worker;
  int fds[protocol::kFdsMax], count = 0;
  const int error = protocol::receive_setup(socket, &w->setup, fds, &count);
  if (error != 0) return fail(w, error, "set-up message", strerror(error));
  close(socket);
  w->to = map_page<const protocol::ToWorker>(fds[0], PROT_READ);
  w->from = map_page<protocol::FromWorker>(fds[1], PROT_READ | PROT_WRITE);
  if (!w->to || !w->from) return fail(w, errno, "mapping a page", strerror(errno));
  if (w->setup.observed)
    if (const char* why = worker::watch_kernels()) return fail(w, 1, "counting kernels", why);
  if (w->setup.device == 1) {
    const int result = worker::cuda_open(static_cast<int>(w->setup.gpus), w->streams);
    if (result != 0) return fail(w, result, "opening the GPU", worker::cuda_error_name(result));
  }
  for (std::uint32_t i = 0; i < w->setup.tensor_count; ++i)
    if (!map_tensor(w, i, fds[protocol::kPages + i])) return nullptr;
  for (int i = 0; i < count; ++i) close(fds[i]);
  return w;
}

int kbench_worker_device(const kbench_worker* w) { return static_cast<int>(w->setup.device); }
int kbench_worker_gpus(const kbench_worker* w) { return static_cast<int>(w->setup.gpus); }
void* kbench_worker_stream(const kbench_worker* w) {
  return w->setup.gpus == 1 ? w->streams[0] : static_cast<void*>(const_cast<void**>(w->streams));
}

void kbench_worker_ready(kbench_worker* w) { say(w, 0, Status::ready, 0, 0, nullptr); }
void kbench_worker_fail(kbench_worker* w, int code, const char* text) {
  say(w, w->epoch, Status::failed, code, 0, text);
}

int kbench_worker_next(kbench_worker* w) {
  const bool cuda = w->setup.device == 1;
  const double spin_end = now_us() + (cuda ? kSpinUsCuda : kSpinUsCpu);
  // Pages that only this process writes, sealed and const: nothing but `go` changes while it waits.
  auto* go = const_cast<std::atomic<std::uint32_t>*>(&w->to->go);
  std::uint32_t seen;
  while ((seen = go->load(std::memory_order_acquire)) == w->epoch) {
    if (now_us() < spin_end)
      protocol::cpu_pause();
    else
      protocol::futex_wait(go, seen, cuda ? kNapNsCuda : kNapNs);
  }
  if (seen == protocol::kStop) return -1;
  w->epoch = seen;
  w->shape = w->to->shape < w->setup.shape_count ? w->to->shape : 0;
  build_args(w);
  w->started_us = now_us();
  if (cuda) worker::cuda_mark(0, w->streams[0]);
  return static_cast<int>(w->shape);
}

const void* kbench_worker_args(const kbench_worker* w) { return w->slots; }
int kbench_worker_slot_count(const kbench_worker* w) { return static_cast<int>(w->setup.shapes[w->shape].slot_count); }
int kbench_worker_first_pointer(const kbench_worker* w) {
  return static_cast<int>(w->setup.shapes[w->shape].first_pointer);
}

void kbench_worker_finish(kbench_worker* w, int code) { finish(w, code, nullptr); }
void kbench_worker_finish_text(kbench_worker* w, int code, const char* text) { finish(w, code, text); }
void kbench_worker_no_deleter(void*) {}

}  // extern "C"
