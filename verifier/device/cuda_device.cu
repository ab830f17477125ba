// The cuda device: one GPU, one context of the verifier's, the trusted window between two stamps of its own kernels.
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kbench/abi.h"
#include "verifier/device/cuda_check.h"
#include "verifier/device/cuda_kernels.cuh"
#include "verifier/device/cuda_memory.h"
#include "verifier/device/cuda_passes.h"
#include "verifier/device/device.h"
#include "verifier/device/nvml.h"
#include "verifier/protocol/protocol.h"

namespace kbench::verify {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double kQuiescenceUsMax = 500;  // 12 us when nothing of the worker's is resident, > 1 ms otherwise
constexpr double kStretchRatioMax = 1.25;
constexpr double kStartExcessUsMax =
    50;                               // 145-158 us behind a finished worker, the whole kernel behind one that is not
constexpr int kEvictFactor = 4;       // times the L2's size
constexpr auto kSnapshotStart = 20s;  // a snapshot that does not start by then: the GPU is lost
constexpr int kCanaryRounds = 400'000;
constexpr std::uint64_t kCanaryBytes = 256ull << 20;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += two;
  }
  return text;
}

template <class T>
class Pinned {
 public:
  Pinned() { check(cudaMallocHost(reinterpret_cast<void**>(&value_), sizeof(T)), "pinned host memory"); }
  ~Pinned() { cudaFreeHost(const_cast<std::remove_volatile_t<T>*>(value_)); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* operator->() { return value_; }
  T* get() { return value_; }

 private:
  T* value_ = nullptr;
};

// The go word's page, made known to the GPU for one repetition. Nothing outlives the worker whose page it is.
class RegisteredPage {
 public:
  explicit RegisteredPage(std::uint32_t* word) : page_(word) {
    auto address = reinterpret_cast<std::uintptr_t>(word);
    page_ = reinterpret_cast<void*>(address / protocol::kPageBytes * protocol::kPageBytes);
    check(cudaHostRegister(page_, protocol::kPageBytes, cudaHostRegisterMapped), "registering the go page");
    void* device = nullptr;
    check(cudaHostGetDevicePointer(&device, page_, 0), "the go page on the GPU");
    word_ = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(device) + address % protocol::kPageBytes);
  }
  ~RegisteredPage() { cudaHostUnregister(page_); }
  RegisteredPage(const RegisteredPage&) = delete;
  RegisteredPage& operator=(const RegisteredPage&) = delete;
  std::uint32_t* word() const { return word_; }

 private:
  void* page_;
  std::uint32_t* word_ = nullptr;
};

class CudaDevice : public Device {
 public:
  CudaDevice() {
    int count = 0;
    check(cudaGetDeviceCount(&count), "looking for GPUs");
    if (count != 1) throw DeviceFault("exactly one GPU must be visible, found " + std::to_string(count));
    check(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceMapHost), "device flags");
    check(cudaSetDevice(0), "selecting the GPU");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    check(cudaMalloc(reinterpret_cast<void**>(&sum_), sizeof *sum_), "device memory");
    check(cudaMalloc(reinterpret_cast<void**>(&pass_sums_), sizeof(PassSums)), "device memory");
    learn_facts();
    evict_words_ = kEvictFactor * facts_.l2_bytes / sizeof(uint4);
    scratch_ =
        cuda_private(std::max<std::uint64_t>({evict_words_ * sizeof(uint4), kCanaryBytes, inputs::kFinishScratchMax}));
    zero(scratch_->region());
    warm_up();
  }
  ~CudaDevice() override {
    cudaFree(sum_);
    cudaFree(pass_sums_);
    cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const Facts& facts() const override { return facts_; }
  Bounds bounds() const override { return {kQuiescenceUsMax, kStretchRatioMax, kStartExcessUsMax}; }
  bool has_kernels() const override { return true; }
  std::uint64_t free_bytes() override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "free memory");
    return free;
  }

  std::unique_ptr<Buffer> allocate(std::uint64_t bytes) override { return cuda_private(bytes); }
  std::unique_ptr<SharedBuffer> allocate_shared(std::uint64_t bytes) override { return cuda_shared(bytes, 0); }

  void read(std::byte* to, Region from) override {
    check(cudaMemcpyAsync(to, from.data, from.bytes, cudaMemcpyDeviceToHost, stream_), "reading device memory");
    sync("reading device memory");
  }
  void write(Region to, const std::byte* from) override {
    check(cudaMemcpyAsync(to.data, from, to.bytes, cudaMemcpyHostToDevice, stream_), "writing device memory");
    sync("writing device memory");
  }
  void zero(Region region) override {
    check(cudaMemsetAsync(region.data, 0, region.bytes, stream_), "zeroing device memory");
    sync("zeroing device memory");
  }

  void fill(const Fill& fill, std::uint64_t seed) override {
    launch_fill(fill, seed, fill.to.data, scratch_->region().data, facts_.units, stream_);
    sync("generating inputs");
  }
  void poison(Region region, std::uint64_t key) override {
    launch_poison(region, key);
    sync("poisoning");
  }
  std::int64_t unpoisoned(Region region, std::uint64_t key) override {
    return static_cast<std::int64_t>(summed([&] {
      gpu::unpoisoned_kernel<<<grid(words_of(region.bytes)), gpu::kThreads, 0, stream_>>>(region.data, region.bytes,
                                                                                          key, sum_);
    }));
  }
  std::uint64_t hash(Region region) override {
    const std::uint64_t sum = summed([&] {
      gpu::hash_kernel<<<grid(words_of(region.bytes)), gpu::kThreads, 0, stream_>>>(region.data, region.bytes,
                                                                                    hash_key_, sum_);
    });
    return hash_end(hash_key_, region.bytes, sum);
  }
  void copy(Copy copy) override {
    if (copy.from.bytes == 0) return;
    launch_copy(copy.to.data, copy.from);
    sync("copying");
  }
  PassSums pass(const PassPlan& plan) override { return run_pass(plan, facts_.units, pass_sums_, stream_); }
  Repetition repeat(const RepetitionPlan& plan, Peer& peer) override;
  void run_reference(Reference* reference, const void* args) override;
  double canary() override;
  std::vector<std::string> complaints() override;

 private:
  void learn_facts();
  void warm_up();
  void stage(const RepetitionPlan& plan);
  double quiesce();
  void open_window(const RepetitionPlan& plan, std::uint32_t* go);
  void close_window(const RepetitionPlan& plan, Repetition& result);

  void sync(const char* what) { check(cudaStreamSynchronize(stream_), what); }
  int grid(std::uint64_t work) const {
    const std::uint64_t blocks = (work + gpu::kThreads - 1) / gpu::kThreads;
    return static_cast<int>(std::clamp<std::uint64_t>(blocks, 1, static_cast<std::uint64_t>(facts_.units) * 8));
  }
  void launch_copy(std::byte* to, Region from) {
    gpu::copy_kernel<<<grid(words_of(from.bytes)), gpu::kThreads, 0, stream_>>>(to, from.data, from.bytes);
    check(cudaGetLastError(), "copying");
  }
  void launch_poison(Region region, std::uint64_t key) {
    gpu::poison_kernel<<<grid(words_of(region.bytes)), gpu::kThreads, 0, stream_>>>(region.data, region.bytes, key);
    check(cudaGetLastError(), "poisoning");
  }
  template <class Launch>
  std::uint64_t summed(Launch launch) {
    check(cudaMemsetAsync(sum_, 0, sizeof *sum_, stream_), "sum");
    launch();
    check(cudaGetLastError(), "sum");
    unsigned long long sum = 0;
    check(cudaMemcpyAsync(&sum, sum_, sizeof sum, cudaMemcpyDeviceToHost, stream_), "sum");
    sync("sum");
    return sum;
  }

  Facts facts_;
  cudaStream_t stream_ = nullptr;
  unsigned long long* sum_ = nullptr;
  PassSums* pass_sums_ = nullptr;
  Pinned<gpu::Stamps> stamps_;
  std::unique_ptr<Buffer> scratch_;
  std::uint64_t evict_words_ = 0;
  std::uint64_t hash_key_ = 0;
  std::vector<std::unique_ptr<Buffer>> staging_;  // one a fill, grown as needed
  std::unique_ptr<Nvml> nvml_;
  std::uint64_t ecc_at_start_ = 0;
};

void CudaDevice::learn_facts() {
  cudaDeviceProp prop{};
  check(cudaGetDeviceProperties(&prop, 0), "device properties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "driver version");
  check(cudaRuntimeGetVersion(&runtime), "runtime version");
  facts_.kind = "cuda";
  facts_.name = prop.name;
  facts_.uuid = uuid_text(prop.uuid);
  facts_.runtime = "CUDA " + version_text(runtime);
  facts_.driver = "CUDA " + version_text(driver);
  facts_.units = prop.multiProcessorCount;
  facts_.memory_bytes = prop.totalGlobalMem;
  facts_.l2_bytes = static_cast<std::uint64_t>(prop.l2CacheSize);
  nvml_ = Nvml::open(facts_.uuid);
  if (nvml_) {
    facts_.driver = nvml_->driver_version();
    facts_.clock_mhz_max = nvml_->clock_mhz_max(false).value_or(0);
    facts_.memory_clock_mhz_max = nvml_->clock_mhz_max(true).value_or(0);
    ecc_at_start_ = nvml_->read().ecc_uncorrected.value_or(0);
  }
  if (getentropy(&hash_key_, sizeof hash_key_) != 0) throw DeviceFault("no entropy");
}

// Loads every kernel and lets the clocks rise: neither may happen inside a window.
void CudaDevice::warm_up() {
  canary();
  const Region words{scratch_->region().data, 4096};
  poison(words, 1);
  unpoisoned(words, 1);
  hash(words);
  quiesce();
  zero(words);
}

// Inputs are made in private memory first and only copied inside the stretch: the shorter the stretch, the less a slice
// of the worker's can hide in it.
void CudaDevice::stage(const RepetitionPlan& plan) {
  if (staging_.size() < plan.fills.size()) staging_.resize(plan.fills.size());
  std::vector<std::pair<const std::byte*, const std::byte*>> moved;  // where a tensor is, where its staged copy is
  for (std::size_t i = 0; i < plan.fills.size(); ++i) {
    Fill fill = plan.fills[i];
    auto& buffer = staging_[i];
    if (!buffer || buffer->region().bytes < fill.to.bytes) {
      buffer.reset();
      buffer = cuda_private(fill.to.bytes);
    }
    for (Region& read : fill.reads)
      for (const auto& [from, staged] : moved)
        if (read.data == from) read.data = const_cast<std::byte*>(staged);
    launch_fill(fill, plan.seed, buffer->region().data, scratch_->region().data, facts_.units, stream_);
    moved.emplace_back(fill.to.data, buffer->region().data);
  }
  sync("generating inputs");
}

double CudaDevice::quiesce() {
  gpu::null_kernel<<<1, 32, 0, stream_>>>();
  sync("quiescence");
  const auto start = Clock::now();
  gpu::quiet_kernel<<<1, 1, 0, stream_>>>(stamps_.get());
  sync("quiescence");
  return us_since(start);
}

void CudaDevice::open_window(const RepetitionPlan& plan, std::uint32_t* go) {
  for (std::size_t i = 0; i < plan.fills.size(); ++i)
    launch_copy(plan.fills[i].to.data, {staging_[i]->region().data, plan.fills[i].to.bytes});
  for (const Region& region : plan.poisoned)
    if (region.bytes) launch_poison(region, plan.poison);
  if (plan.evict)
    gpu::evict_kernel<<<facts_.units * 8, gpu::kThreads, 0, stream_>>>(
        reinterpret_cast<const uint4*>(scratch_->region().data), evict_words_, reinterpret_cast<std::uint32_t*>(sum_));
  gpu::open_kernel<<<1, 1, 0, stream_>>>(stamps_.get(), go, plan.epoch);
  check(cudaGetLastError(), "opening the window");
}

void CudaDevice::close_window(const RepetitionPlan& plan, Repetition& result) {
  if (plan.snapshots.size() > gpu::kRegionsMax) throw DeviceFault("too many outputs in one snapshot");
  gpu::SnapshotPlan snapshot{};
  for (const Copy& copy : plan.snapshots) {
    snapshot.regions[snapshot.count++] = {copy.from.data, copy.to.data, copy.from.bytes, snapshot.chunks};
    snapshot.chunks += chunks_of(copy.from.bytes);
  }
  snapshot.key = plan.order;
  const int blocks =
      static_cast<int>(std::clamp<std::uint64_t>(snapshot.chunks, 1, static_cast<std::uint64_t>(facts_.units) * 8));
  const auto launched = Clock::now();
  gpu::snapshot_kernel<<<blocks, gpu::kThreads, 0, stream_>>>(snapshot, stamps_.get(), sum_);
  check(cudaGetLastError(), "snapshot");
  while (stamps_->started == 0)
    if (Clock::now() - launched > kSnapshotStart)
      throw DeviceFault("the snapshot kernel does not start: the GPU hangs");
  result.start_us = us_since(launched);
  sync("snapshot");
  unsigned long long b = 0;
  check(cudaMemcpyAsync(&b, sum_, sizeof b, cudaMemcpyDeviceToHost, stream_), "stamp B");
  sync("stamp B");
  result.window_us = (static_cast<double>(b) - static_cast<double>(stamps_->a)) * 1e-3;
  result.stretch_us = (static_cast<double>(stamps_->a) - static_cast<double>(stamps_->quiet)) * 1e-3;
}

Repetition CudaDevice::repeat(const RepetitionPlan& plan, Peer& peer) {
  Repetition result;
  stage(plan);
  const RegisteredPage page(peer.go_word());
  check(cudaCtxResetPersistingL2Cache(), "resetting L2 set-aside");
  check(cudaMemsetAsync(sum_, 0xff, sizeof *sum_, stream_), "stamp B");
  stamps_->quiet = 0;
  stamps_->a = 0;
  stamps_->started = 0;
  result.quiescence_us = quiesce();
  open_window(plan, page.word());
  peer.wake();
  result.ended = peer.wait_done(plan.epoch, plan.deadline);
  if (result.ended == Ended::done) {
    close_window(plan, result);
    result.worker_us = peer.worker_us();
  } else {
    sync("a window that did not close");
  }
  return result;
}

namespace {

void* scratch_of(void* context, unsigned long long bytes) {
  auto& blocks = *static_cast<std::vector<void*>*>(context);
  void* block = nullptr;
  if (cudaMalloc(&block, bytes ? bytes : 1) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  blocks.push_back(block);
  return block;
}

}  // namespace

void CudaDevice::run_reference(Reference* reference, const void* args) {
  std::vector<void*> blocks;
  kbench_exec exec{&blocks, nullptr, scratch_of, stream_};
  const int rc = reference(args, &exec);
  const cudaError_t done = cudaStreamSynchronize(stream_);
  for (void* block : blocks) cudaFree(block);
  if (rc != 0) throw DeviceFault("the reference returned " + std::to_string(rc));
  check(done, "the reference");
}

double CudaDevice::canary() {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "canary");
  check(cudaEventCreate(&end), "canary");
  std::byte* base = scratch_->region().data;
  check(cudaEventRecord(begin, stream_), "canary");
  gpu::canary_kernel<<<facts_.units * 8, gpu::kThreads, 0, stream_>>>(reinterpret_cast<float*>(sum_),
                                                                      kCanaryRounds / 100);
  launch_copy(base + kCanaryBytes / 2, {base, kCanaryBytes / 2});
  check(cudaEventRecord(end, stream_), "canary");
  sync("canary");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "canary");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms * 1e3;
}

std::vector<std::string> CudaDevice::complaints() {
  if (!nvml_) return {};
  const GpuReading reading = nvml_->read();
  auto found = slowdown_names(reading.reasons.value_or(0));
  if (reading.compute_processes.value_or(0) > 1)
    found.push_back("foreign process: " + std::to_string(*reading.compute_processes - 1) +
                    " besides the verifier on the GPU");
  if (reading.ecc_uncorrected.value_or(0) > ecc_at_start_)
    found.push_back("ecc: uncorrected errors rose during the grading");
  return found;
}

}  // namespace

std::unique_ptr<Device> open_cuda_device() {
  // Before the first CUDA call: no MPS daemon of anybody's, no JIT cache that somebody wrote, no lazy loading inside a
  // window.
  setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/kbench-mps", 1);
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  return std::make_unique<CudaDevice>();
}

}  // namespace kbench::verify
