// What differs between the cpu and the cuda device: memory, the verifier's own kernels, and the trusted window.
//
// A device may have several GPUs (the cpu device: as many, all of one memory), numbered from 0. One device, one thread:
// the verifier's main thread. Every call either does all it says or throws DeviceFault, which
// is an infrastructure fault unless the caller knows that the worker caused it (the worker's faults arrive through
// Peer).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "verifier/inputs/inputs.h"
#include "verifier/problem/problem.h"

struct kbench_exec;

namespace kbench::verify {

struct DeviceFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Not the GPUs that the task needs: their number, their models, what they reach. No GPU is at fault.
struct WrongGpus : DeviceFault {
  using DeviceFault::DeviceFault;
};
struct OutOfDeviceMemory : DeviceFault {
  using DeviceFault::DeviceFault;
};

struct Region {
  std::byte* data = nullptr;  // an address of the device, valid on all of its GPUs
  std::uint64_t bytes = 0;
  int gpu = 0;  // whose memory it is: that one works on it
};

// Memory only the verifier maps. Scrubbed (zeroed) before it is freed.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual Region region() const = 0;
};

// Memory handed to a worker as a file descriptor: guard band, tensor, guard band. The worker sees all three, and is
// told where the tensor is; whoever writes outside it is found out.
class SharedBuffer {
 public:
  virtual ~SharedBuffer() = default;
  virtual Region tensor() const = 0;
  virtual Region front_guard() const = 0;
  virtual Region back_guard() const = 0;
  virtual int fd() const = 0;                       // owned by the buffer
  virtual std::uint64_t mapped_bytes() const = 0;   // what a worker maps
  virtual std::uint64_t tensor_offset() const = 0;  // where in that the tensor starts
};

struct Facts {                  // recorded with every result
  std::string kind;             // "cpu" | "cuda"
  std::string name;             // "NVIDIA H200" | the processor's name
  std::string uuid;             // empty on cpu
  std::string driver, runtime;  // versions
  int units = 0;                // SMs | cores in the affinity mask
  std::uint64_t memory_bytes = 0, l2_bytes = 0;
  double clock_mhz_max = 0, memory_clock_mhz_max = 0;
  std::vector<std::string> warnings;  // where it cannot be measured on as it should be
};

// Bounds on the evidence of a window; what breaks one makes the repetition count as infinitely slow.
// Of several GPUs each is held to them.
struct Bounds {
  double quiescence_us_max;    // second null kernel
  double stretch_ratio_max;    // quiescence to A, over its calibrated length
  double start_excess_us_max;  // launch of the snapshot to its start, over its calibrated length
};

struct Fill {
  inputs::Program program;
  std::vector<Region> reads;
  Region to;
};
struct Copy {
  Region from, to;
};

// One repetition, from quiescence to snapshot.
struct RepetitionPlan {
  std::uint32_t epoch;           // the go word's new value
  std::uint64_t seed;            // of the inputs; secret, fresh
  std::uint64_t poison;          // key of the poison and of the guard bands; secret, fresh
  std::uint64_t order;           // key of the snapshot's order; secret, fresh
  std::vector<Fill> fills;       // in order
  std::vector<Region> poisoned;  // pure outputs and guard bands: random bytes by key and offset
  std::vector<Copy> snapshots;   // outputs and in-out tensors, to private memory
  bool evict = true;             // empty the caches before A
  std::chrono::nanoseconds deadline;
};

enum class Ended : std::uint8_t { done, refused, died, timed_out };  // refused: kbench_run returned non-zero

struct Repetition {
  Ended ended = Ended::died;
  double window_us = 0;  // B - A; the overhead is not yet subtracted
  // Of several GPUs the worst of each.
  double quiescence_us = 0;  // 0 on a device that stops the worker instead
  double stretch_us = 0;     // quiescence to A
  double start_us = 0;       // launch of the snapshot to its start on the device
  double worker_us = 0;      // what the worker says its call took; evidence only
};

// The worker, as a device's window needs it. Implemented by process/process.h.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::uint32_t* go_word() = 0;  // in the page the worker reads; the page is kPageBytes long and page-aligned
  virtual void go(std::uint32_t epoch) = 0;  // writes the word and wakes the worker
  virtual void wake() = 0;                   // wakes a worker that sleeps on the word, which a kernel has written
  virtual Ended wait_done(std::uint32_t epoch, std::chrono::nanoseconds deadline) = 0;  // busy at first, then sleeping
  virtual double worker_us() = 0;
  virtual void
  stop() = 0;  // all of its processes are stopped when it returns (cpu device); again: checks that none ran since
  virtual void resume() = 0;
};

// Sums over all elements that the comparison rules are built of; see compare/passes.h for each pass.
struct PassPlan {
  std::uint8_t pass;  // compare::Pass
  DType dtype;
  Region got, expected, initial;
  std::int64_t count;  // stored elements
  std::int64_t row;    // elements a row; a row-wise pass
  Region row_scales;   // float a row, made by the row-scale pass
  double parameters[8];
};
struct PassSums {
  std::int64_t wrong = 0, first = -1, nonfinite = 0, flips = 0, rows_wrong = 0;
  double max_error = 0, sum_error2 = 0, sum_expected2 = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const Facts& facts() const = 0;
  virtual Bounds bounds() const = 0;
  // Of several GPUs: what the one with the least has, times their number.
  virtual std::uint64_t free_bytes() = 0;
  // Whether work here is kernels, which a worker can be asked to count (Setup::observed): else a rule on their number
  // does not apply.
  virtual bool has_kernels() const = 0;

  virtual std::unique_ptr<Buffer> allocate(std::uint64_t bytes, int gpu = 0) = 0;
  virtual std::unique_ptr<SharedBuffer> allocate_shared(std::uint64_t bytes, int gpu = 0) = 0;
  virtual void read(std::byte* to, Region from) = 0;
  virtual void write(Region to, const std::byte* from) = 0;
  virtual void zero(Region region) = 0;

  virtual void fill(const Fill& fill, std::uint64_t seed) = 0;
  virtual void poison(Region region, std::uint64_t key) = 0;
  virtual std::int64_t unpoisoned(Region region,
                                  std::uint64_t key) = 0;  // bytes that differ from the poison: guard bands
  virtual std::uint64_t hash(Region region) = 0;           // of all bytes, whatever the order of the threads
  virtual void copy(Copy copy) = 0;
  virtual PassSums pass(const PassPlan& plan) = 0;

  virtual Repetition repeat(const RepetitionPlan& plan, Peer& peer) = 0;

  // Runs a reference's entry point on this device (of several GPUs on the first, which reaches the others' memory) and
  // waits for it. Throws DeviceFault on a non-zero return.
  using Reference = int(const void* args, kbench_exec* exec);
  virtual void run_reference(Reference* reference, const void* args) = 0;

  // A fixed load of known cost, in us: before the first and after the last window; a shift says the conditions changed.
  virtual double canary() = 0;
  // Reasons to distrust the time now: "throttle: hw_thermal", "foreign process 1234". Empty is good.
  virtual std::vector<std::string> complaints() = 0;
};

// Counts for as many GPUs as it is asked to be.
std::unique_ptr<Device> open_cpu_device();
// Of exactly the GPUs that are visible: throws DeviceFault when they are not as many as asked for, or cannot reach one
// another's memory. Absent in builds without CUDA (then throws DeviceFault saying so).
std::unique_ptr<Device> open_cuda_device(int gpus = 1);

}  // namespace kbench::verify
