// A worker that takes the protocol over and shaves off the window what it can. For probe/scale-f32;
// scripts/gpu/adversary measures what it gains. `early`: says done as soon as its kernel is launched. `queue`: before
// the window opens it queues, behind a wait on the go word, the kernel of the next call, which finds its shape in the
// page. Neither: the same loop, honest.
//
// Why the wait alone did not work (Queue::parked; record of 2026-11-30: windows of 17 ms). It is not the protocol: the
// epoch waited for is the one that comes (the verifier's next epoch is the last one done plus one), the go word is the
// same page for the worker's whole life (the verifier registers and unregisters its own mapping of it for each
// repetition, the worker's stays), shape and call are written before go, and after the kernel that writes go the
// verifier runs nothing on the GPU until done. The outputs were right, so the kernel did run behind the go word. The
// windows say what it waited for: less the kernel's own time, the wait ended 16.77, 16.69, 16.53 and 15.83 ms after
// stamp A for outputs of 0.27, 0.54, 0.81 and 2.5 GB: 2^24 ns (16.78 ms) after a moment that lies the further before A
// the longer the verifier fills and poisons. That is a timer, not an event: the GPU looks at a wait that has failed
// again only when that time is over, or (to be shown on a GPU: the two modes below are for that) when work arrives for
// the same context. The two-process probe, which saw the wait end within microseconds, had queued it 2 ms before go;
// here the verifier hashes, checks and makes inputs first, which takes many times as long. `both` then said done while
// its kernel was parked: its outputs changed after the snapshot, which ends a worker run at once (late_write) and so
// records none.
//   rung   the wait is queued at once, and a thread rings the doorbell: writes a word on another stream of the context
//   late   the wait is queued when the page names another shape, which the verifier writes just before it makes inputs;
//          where the next call has the same shape it cannot be seen and the call is an honest one
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "pages.h"
#include "task.h"

namespace adversary {

constexpr int kShapesMax = 8;
constexpr std::uint32_t kStop = 0xffffffffu, kRun = 2;
constexpr unsigned kRingUs = 300;  // seldom enough to leave most stretches of the verifier's alone

enum class Queue { none, parked, rung, late };

struct Vector {
  const float* x;
  float* y;
  long long n;
};
struct Table {
  Vector shapes[kShapesMax];
};

__device__ inline void scale(const Vector& v) {
  const auto* x = reinterpret_cast<const float4*>(v.x);
  auto* y = reinterpret_cast<float4*>(v.y);
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < v.n / 4; i += stride) {
    float4 t = x[i];
    t.x *= 2, t.y *= 2, t.z *= 2, t.w *= 2;
    y[i] = t;
  }
  if (blockIdx.x == 0 && threadIdx.x < (v.n & 3)) v.y[(v.n & ~3ll) + threadIdx.x] = 2 * v.x[(v.n & ~3ll) + threadIdx.x];
}
__global__ void now(Vector v) { scale(v); }
__global__ void whichever(const Table table, const volatile std::uint32_t* shape) {
  scale(table.shapes[*shape % kShapesMax]);
}

inline int launch(const Vector& v, cudaStream_t stream) {
  now<<<132 * 16, 256, 0, stream>>>(v);
  return static_cast<int>(cudaGetLastError());
}

inline void say_done(const Pages& pages, std::uint32_t epoch) {
  pages.from->status = 2;
  pages.from->code = 0;
  pages.from->done.store(epoch, std::memory_order_release);
}

template <class Function>
Function* of_driver(Function*, const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(driver, name));
}

// The page as the GPU sees it.
inline std::uint32_t* registered(const Pages& pages) {
  void* device = nullptr;
  if (cudaHostRegister(pages.to, 4096, cudaHostRegisterMapped | cudaHostRegisterReadOnly) != cudaSuccess ||
      cudaHostGetDevicePointer(&device, pages.to, 0) != cudaSuccess)
    _exit(41);
  return static_cast<std::uint32_t*>(device);  // magic, version, go, call, shape
}

inline void ring_while(const std::atomic<bool>* waiting) {
  auto* write_value = of_driver(&cuStreamWriteValue32, "cuStreamWriteValue32_v2");
  cudaStream_t stream;
  void* word = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess || cudaMalloc(&word, 4) != cudaSuccess)
    _exit(44);
  for (std::uint32_t k = 0;; ++k, usleep(kRingUs))
    if (*waiting && write_value(stream, reinterpret_cast<CUdeviceptr>(word), k, 0) != CUDA_SUCCESS) _exit(45);
}

// Never returns.
inline void take_over(const Table& table, const Pages& pages, bool early, Queue queue) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  auto* wait_value = of_driver(&cuStreamWaitValue32, "cuStreamWaitValue32_v2");
  std::uint32_t* base = queue == Queue::none ? nullptr : registered(pages);
  std::atomic<bool> waiting{false};
  if (queue == Queue::rung) new std::thread(ring_while, &waiting);
  const auto enqueue = [&](std::uint32_t epoch) {
    if (wait_value(stream, reinterpret_cast<CUdeviceptr>(base + 2), epoch, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
      _exit(43);
    cudaEventRecord(begin, stream);
    whichever<<<132 * 16, 256, 0, stream>>>(table, base + 4);
    cudaEventRecord(end, stream);
    waiting = true;
  };
  for (std::uint32_t epoch = pages.to->go.load(); epoch != kStop;) {
    const std::uint32_t shape = pages.to->shape;
    if (!waiting) {
      cudaEventRecord(begin, stream);
      launch(table.shapes[shape % kShapesMax], stream);
      cudaEventRecord(end, stream);
    }
    if (early) say_done(pages, epoch);
    if (cudaStreamSynchronize(stream) != cudaSuccess) _exit(42);
    waiting = false;
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    pages.from->call_us = ms * 1000;
    say_done(pages, epoch);
    if (queue == Queue::parked || queue == Queue::rung) enqueue(epoch + 1);
    std::uint32_t next;
    while ((next = pages.to->go.load(std::memory_order_acquire)) == epoch)
      if (queue == Queue::late && !waiting && *const_cast<volatile std::uint32_t*>(&pages.to->shape) != shape)
        enqueue(epoch + 1);
    epoch = next;
  }
  _exit(0);
}

inline int run(const kbench_args* a, kbench_stream stream, bool early, Queue queue) {
  static Table table{};
  static const Pages pages = find_pages();
  const Vector v{a->x, a->y, a->N};
  if (!pages.to || !pages.from) return 40;
  table.shapes[pages.to->shape % kShapesMax] = v;
  if (pages.to->call == kRun) take_over(table, pages, early, queue);
  return launch(v, static_cast<cudaStream_t>(stream));
}

}  // namespace adversary
