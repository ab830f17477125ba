// The cpu device: the same protocol as on a GPU over shared memory. What a GPU's time slices and stamps prove there is
// had here by stopping the worker: it sees nothing of its inputs before stamp A, and can change nothing after stamp B.
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "kbench/abi.h"
#include "verifier/compare/passes.h"
#include "verifier/device/cpu_cache.h"
#include "verifier/device/cpu_host.h"
#include "verifier/device/cpu_memory.h"
#include "verifier/device/cpu_pool.h"
#include "verifier/device/device.h"
#include "verifier/device/kernels.h"
#include "verifier/inputs/generate.h"

namespace kbench::verify {
namespace {

constexpr std::int64_t kGrainBytes = 256 * 1024;    // of one range, where work is by bytes
constexpr std::int64_t kGrainElements = 16 * 1024;  // where it is by elements
constexpr std::int64_t kLineBytes = 64;             // of a cache
constexpr int kRangesPerThread = 8;                 // of passes and references: uneven ranges even out
constexpr int kCanaryRounds = 2'000'000;
constexpr int kCanaryTries = 3;
constexpr auto kLoadSample = std::chrono::milliseconds(50);
constexpr double kForeignLoadMax = 0.15;  // share of the processors busy while nothing of ours runs

// Not steppable and not slewed, unlike CLOCK_MONOTONIC and the rest.
double now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

class CpuDevice final : public Device {
 public:
  CpuDevice() : facts_(cpu_facts(pool_.processors())), throttled_at_start_(read_throttled().value_or(0)) {
    if (getrandom(&hash_key_, sizeof hash_key_, 0) != sizeof hash_key_) throw DeviceFault("no entropy");
    const std::uint64_t evicted = evicted_bytes(facts_.l2_bytes, facts_.memory_bytes, drops_lines_);
    if (auto warning = eviction_warning(facts_.l2_bytes, evicted, drops_lines_); !warning.empty())
      facts_.warnings.push_back(warning);
    scratch_ = cpu_private(evicted);
    poison(scratch_->region(), hash_key_);
  }

  const Facts& facts() const override { return facts_; }
  // The worker is stopped outside its window: nothing it does can stretch the verifier's parts or hide in them.
  Bounds bounds() const override {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    return {kNone, kNone, kNone};
  }
  // Beside what a reference has each time.
  std::uint64_t free_bytes() override {
    const std::uint64_t free = cpu_free_bytes();
    return free - std::min(free, scratch_had_);
  }
  bool has_kernels() const override { return false; }

  std::unique_ptr<Buffer> allocate(std::uint64_t bytes, int gpu) override { return cpu_private(bytes, gpu); }
  std::unique_ptr<SharedBuffer> allocate_shared(std::uint64_t bytes, int gpu) override {
    return cpu_shared(bytes, gpu);
  }
  void read(std::byte* to, Region from) override { std::memcpy(to, from.data, from.bytes); }
  void write(Region to, const std::byte* from) override { std::memcpy(to.data, from, to.bytes); }
  void zero(Region region) override {
    pool_.run(static_cast<std::int64_t>(region.bytes), kGrainBytes,
              [&](std::int64_t begin, std::int64_t end) { std::memset(region.data + begin, 0, end - begin); });
  }

  void fill(const Fill& fill, std::uint64_t seed) override;
  void poison(Region region, std::uint64_t key) override {
    over_words(region, [&](std::uint64_t word) { poison_word(region.data, region.bytes, word, key); });
  }
  std::int64_t unpoisoned(Region region, std::uint64_t key) override {
    return static_cast<std::int64_t>(sum_over_words(
        region, [&](std::uint64_t word) { return unpoisoned_in_word(region.data, region.bytes, word, key); }));
  }
  std::uint64_t hash(Region region) override {
    const std::uint64_t sum = sum_over_words(region, [&](std::uint64_t word) {
      return hash_word(hash_key_, word, word_at(region.data, region.bytes, word));
    });
    return hash_end(hash_key_, region.bytes, sum);
  }
  void copy(Copy copy) override {
    if (copy.from.bytes != copy.to.bytes) throw DeviceFault("copy between regions of different size");
    pool_.run(static_cast<std::int64_t>(copy.from.bytes), kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(copy.to.data + begin, copy.from.data + begin, end - begin);
    });
  }
  PassSums pass(const PassPlan& plan) override;
  Repetition repeat(const RepetitionPlan& plan, Peer& peer) override;
  void run_reference(Reference* reference, const void* args) override;
  double canary() override;
  std::vector<std::string> complaints() override;

 private:
  template <class Body>
  void over_words(Region region, const Body& body) {
    pool_.run(static_cast<std::int64_t>(words_of(region.bytes)), kGrainBytes / kWordBytes,
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::uint64_t>(i));
              });
  }
  template <class Term>
  std::uint64_t sum_over_words(Region region, const Term& term) {
    std::atomic<std::uint64_t> sum{0};
    pool_.run(static_cast<std::int64_t>(words_of(region.bytes)), kGrainBytes / kWordBytes,
              [&](std::int64_t begin, std::int64_t end) {
                std::uint64_t part = 0;
                for (std::int64_t i = begin; i < end; ++i)
                  part += static_cast<std::uint64_t>(term(static_cast<std::uint64_t>(i)));
                sum += part;
              });
    return sum;
  }
  std::int64_t grain_of(std::int64_t count) const {
    return std::max<std::int64_t>(1, count / (pool_.size() * kRangesPerThread));
  }
  void snapshot(const Copy& copy, std::uint64_t order);
  void evict(const RepetitionPlan& plan);

  const bool drops_lines_ = can_drop_lines();
  CpuPool pool_;
  Facts facts_;
  std::uint64_t throttled_at_start_;
  std::uint64_t hash_key_ = 0;
  std::unique_ptr<Buffer> scratch_;
  std::uint64_t scratch_had_ = 0;  // the most that a run of a reference has had
};

void CpuDevice::fill(const Fill& fill, std::uint64_t seed) {
  const inputs::Program& program = fill.program;
  if (fill.to.bytes < static_cast<std::uint64_t>(program.elements) * bytes_of(program.dtype))
    throw DeviceFault("a generated tensor is larger than its buffer");
  const void* reads[inputs::kReadsMax] = {};
  if (fill.reads.size() > inputs::kReadsMax) throw DeviceFault("a generator refers to too many tensors");
  for (std::size_t i = 0; i < fill.reads.size(); ++i) reads[i] = fill.reads[i].data;
  pool_.run(inputs::generation_units(program), kGrainElements, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) inputs::generate_unit(program, seed, i, reads, fill.to.data);
  });
  std::vector<double> scratch(static_cast<std::size_t>(inputs::finish_scratch_bytes(program)) / sizeof(double));
  for (int phase = 0; phase < inputs::finish_phases(program); ++phase) {
    const std::int64_t units = inputs::finish_units(program, phase);
    pool_.run(units, grain_of(units), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        inputs::finish_unit(program, seed, phase, i, reads, fill.to.data, scratch.data());
    });
  }
}

PassSums CpuDevice::pass(const PassPlan& plan) {
  const std::int64_t units = compare::units(plan), grain = grain_of(units);
  std::vector<PassSums> parts(static_cast<std::size_t>((units + grain - 1) / grain));
  pool_.run(units, grain, [&](std::int64_t begin, std::int64_t end) {
    compare::accumulate(plan, begin, end, parts[static_cast<std::size_t>(begin / grain)]);
  });
  PassSums sums;
  for (const PassSums& part : parts) compare::merge(sums, part);  // in order: the same sums every time
  return sums;
}

void CpuDevice::snapshot(const Copy& copy, std::uint64_t order) {
  if (copy.from.bytes != copy.to.bytes) throw DeviceFault("snapshot between regions of different size");
  const std::uint64_t bytes = copy.from.bytes;
  const Permutation chunks = permutation(chunks_of(bytes), order);
  pool_.run(static_cast<std::int64_t>(chunks.count), kGrainBytes / kChunkBytes,
            [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i)
                copy_chunk(copy.to.data, copy.from.data, bytes, chunks, static_cast<std::uint64_t>(i), 0, 1);
            });
}

// What was just written is not left for the window to write back, at the worker's cost: its lines are dropped, or
// driven out by reading, of which a word brings its whole line.
void CpuDevice::evict(const RepetitionPlan& plan) {
  std::vector<Region> written = plan.poisoned;
  for (const Fill& each : plan.fills) written.push_back(each.to);
  for (const Region& region : written)
    if (drops_lines_)
      pool_.run(static_cast<std::int64_t>(region.bytes), kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
        drop_lines({region.data + begin, static_cast<std::uint64_t>(end - begin)});
      });
  const Region scratch = scratch_->region();
  pool_.run(static_cast<std::int64_t>(scratch.bytes / kLineBytes), kGrainBytes / kLineBytes,
            [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t line = begin; line < end; ++line)
                static_cast<void>(*reinterpret_cast<const volatile std::uint64_t*>(scratch.data + line * kLineBytes));
            });
}

// The order matters:
//   stop     before anything is written: no head start on inputs, none on the poison's place
//   stop     again: nothing ran since; a process can arm a timer that continues it
//   stamp A  before the worker may run: what it does afterwards is all inside the window
//   go, resume, wait
//   stop     then stamp B: an early "done" gains nothing, for whoever still computes does so until B
//   snapshot of stopped memory; stop again: nothing ran since B
Repetition CpuDevice::repeat(const RepetitionPlan& plan, Peer& peer) {
  Repetition result;
  peer.stop();
  const double stopped = now_us();
  for (const Fill& each : plan.fills) fill(each, plan.seed);
  for (const Region& region : plan.poisoned) poison(region, plan.poison);
  if (plan.evict) evict(plan);
  peer.stop();

  const double a = now_us();
  peer.go(plan.epoch);
  peer.resume();
  result.ended = peer.wait_done(plan.epoch, plan.deadline);
  const double said_done = now_us();
  result.stretch_us = a - stopped;
  if (result.ended != Ended::done) return result;
  result.worker_us = peer.worker_us();
  peer.stop();
  const double b = now_us();

  result.window_us = b - a;
  result.start_us = b - said_done;
  for (const Copy& each : plan.snapshots) snapshot(each, plan.order);
  peer.stop();
  // Asked once more: a violation found by the last stop makes this repetition void.
  result.ended = peer.wait_done(plan.epoch, std::chrono::nanoseconds(0));
  peer.resume();
  return result;
}

struct ReferenceContext {
  CpuPool* pool;
  std::uint64_t had;  // by one run before
  std::uint64_t bytes = 0;
  std::vector<std::unique_ptr<Buffer>> scratch = {};
};

void run_ranges(void* context, long long n, void (*body)(void* arg, long long begin, long long end), void* arg) {
  CpuPool& pool = *static_cast<ReferenceContext*>(context)->pool;
  pool.run(n, n / (pool.size() * kRangesPerThread),
           [&](std::int64_t begin, std::int64_t end) { body(arg, begin, end); });
}

// A reference has run before the first worker did. What it had then it has again, whatever seems to be in use: a worker
// can leave nothing behind but what the kernel lets go of when it is needed.
void* take_scratch(void* context, unsigned long long bytes) {
  auto& run = *static_cast<ReferenceContext*>(context);
  try {
    const bool again = bytes <= run.had && run.bytes <= run.had - bytes;
    run.scratch.push_back(again ? cpu_private_again(bytes) : cpu_private(bytes));
    run.bytes += bytes;
    return run.scratch.back()->region().data;
  } catch (const OutOfDeviceMemory&) {
    return nullptr;
  }
}

void CpuDevice::run_reference(Reference* reference, const void* args) {
  ReferenceContext context{&pool_, scratch_had_};
  kbench_exec exec{&context, run_ranges, take_scratch, nullptr};
  const int code = reference(args, &exec);
  scratch_had_ = std::max(scratch_had_, context.bytes);
  if (code != 0) throw DeviceFault("the reference returned " + std::to_string(code));
}

double CpuDevice::canary() {
  double best = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kCanaryTries; ++attempt) {
    const double start = now_us();
    pool_.run(pool_.size(), 1, [](std::int64_t begin, std::int64_t) {
      std::uint64_t state = static_cast<std::uint64_t>(begin) + 1;
      for (int i = 0; i < kCanaryRounds; ++i) state = mix64(state + 1);
      const volatile std::uint64_t sink = state;
      static_cast<void>(sink);
    });
    best = std::min(best, now_us() - start);
  }
  return best;
}

// To be asked while nothing of the grading runs: all load then is foreign.
std::vector<std::string> CpuDevice::complaints() {
  std::vector<std::string> found;
  const Jiffies before = read_jiffies(pool_.processors());
  std::this_thread::sleep_for(kLoadSample);
  const Jiffies after = read_jiffies(pool_.processors());
  const auto all = static_cast<double>(after.all - before.all), idle = static_cast<double>(after.idle - before.idle);
  if (all > 0 && 1 - idle / all > kForeignLoadMax) {
    const int percent = static_cast<int>(100 * (1 - idle / all));
    found.push_back("foreign load: " + std::to_string(percent) + " % of " + std::to_string(pool_.size()) +
                    " processors");
  }
  if (read_throttled().value_or(0) > throttled_at_start_) found.push_back("throttle: processor quota");
  return found;
}

}  // namespace

std::unique_ptr<Device> open_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace kbench::verify
