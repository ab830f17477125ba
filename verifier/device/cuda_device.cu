// The cuda device: GPUs, one context of the verifier's on each, the trusted window between two stamps of its own
// kernels on the first. What is done on the others is said in docs/verifier.md.
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

// What the verifier has on one GPU.
struct Gpu {
  int ordinal = 0;
  int units = 0;
  cudaStream_t stream = nullptr;
  unsigned long long* sum = nullptr;
  PassSums* pass_sums = nullptr;
  Pinned<gpu::Stamps> stamps;
  std::unique_ptr<Buffer> scratch;
  std::uint64_t evict_words = 0;
  std::unique_ptr<Nvml> nvml;
  std::uint64_t ecc_at_start = 0;

  Gpu(int number, const cudaDeviceProp& prop) : ordinal(number), units(prop.multiProcessorCount) {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cudaMalloc(reinterpret_cast<void**>(&sum), sizeof *sum), "device memory");
    check(cudaMalloc(reinterpret_cast<void**>(&pass_sums), sizeof(PassSums)), "device memory");
    evict_words = kEvictFactor * static_cast<std::uint64_t>(prop.l2CacheSize) / sizeof(uint4);
    scratch = cuda_private(
        std::max<std::uint64_t>({evict_words * sizeof(uint4), kCanaryBytes, inputs::kFinishScratchMax}), ordinal);
    nvml = Nvml::open(uuid_text(prop.uuid));
    if (nvml) ecc_at_start = nvml->read().ecc_uncorrected.value_or(0);
  }
  ~Gpu() {
    cudaSetDevice(ordinal);
    cudaFree(sum);
    cudaFree(pass_sums);
    cudaStreamDestroy(stream);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void sync(const char* what) const { check(cudaStreamSynchronize(stream), what); }
  int grid(std::uint64_t work) const {
    const std::uint64_t blocks = (work + gpu::kThreads - 1) / gpu::kThreads;
    return static_cast<int>(std::clamp<std::uint64_t>(blocks, 1, static_cast<std::uint64_t>(units) * 8));
  }
  void launch_copy(std::byte* to, Region from) const {
    gpu::copy_kernel<<<grid(words_of(from.bytes)), gpu::kThreads, 0, stream>>>(to, from.data, from.bytes);
    check(cudaGetLastError(), "copying");
  }
  void launch_poison(Region region, std::uint64_t key) const {
    gpu::poison_kernel<<<grid(words_of(region.bytes)), gpu::kThreads, 0, stream>>>(region.data, region.bytes, key);
    check(cudaGetLastError(), "poisoning");
  }
  template <class Launch>
  std::uint64_t summed(Launch launch) const {
    check(cudaMemsetAsync(sum, 0, sizeof *sum, stream), "sum");
    launch();
    check(cudaGetLastError(), "sum");
    unsigned long long total = 0;
    check(cudaMemcpyAsync(&total, sum, sizeof total, cudaMemcpyDeviceToHost, stream), "sum");
    sync("sum");
    return total;
  }
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int gpus) {
    int count = 0;
    check(cudaGetDeviceCount(&count), "looking for GPUs");
    if (count != gpus)
      throw WrongGpus("exactly " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") + " must be visible, found " +
                      std::to_string(count));
    for (int number = 0; number < gpus; ++number) open(number);
    connect();
    learn_facts();
    for (const auto& gpu : gpus_) zero(gpu->scratch->region());
    warm_up();
  }

  const Facts& facts() const override { return facts_; }
  Bounds bounds() const override { return {kQuiescenceUsMax, kStretchRatioMax, kStartExcessUsMax}; }
  bool has_kernels() const override { return true; }
  std::uint64_t free_bytes() override {
    std::uint64_t least = UINT64_MAX;
    for (const auto& gpu : gpus_) {
      std::size_t free = 0, total = 0;
      on(gpu->ordinal);
      check(cudaMemGetInfo(&free, &total), "free memory");
      least = std::min<std::uint64_t>(least, free);
    }
    return least * gpus_.size();
  }

  std::unique_ptr<Buffer> allocate(std::uint64_t bytes, int gpu) override { return cuda_private(bytes, gpu); }
  std::unique_ptr<SharedBuffer> allocate_shared(std::uint64_t bytes, int gpu) override {
    return cuda_shared(bytes, gpu, static_cast<int>(gpus_.size()));
  }

  void read(std::byte* to, Region from) override {
    const Gpu& gpu = on(from.gpu);
    check(cudaMemcpyAsync(to, from.data, from.bytes, cudaMemcpyDeviceToHost, gpu.stream), "reading device memory");
    gpu.sync("reading device memory");
  }
  void write(Region to, const std::byte* from) override {
    const Gpu& gpu = on(to.gpu);
    check(cudaMemcpyAsync(to.data, from, to.bytes, cudaMemcpyHostToDevice, gpu.stream), "writing device memory");
    gpu.sync("writing device memory");
  }
  void zero(Region region) override {
    const Gpu& gpu = on(region.gpu);
    check(cudaMemsetAsync(region.data, 0, region.bytes, gpu.stream), "zeroing device memory");
    gpu.sync("zeroing device memory");
  }

  void fill(const Fill& fill, std::uint64_t seed) override {
    const Gpu& gpu = on(fill.to.gpu);
    launch_fill(fill, seed, fill.to.data, gpu.scratch->region().data, gpu.units, gpu.stream);
    gpu.sync("generating inputs");
  }
  void poison(Region region, std::uint64_t key) override {
    const Gpu& gpu = on(region.gpu);
    gpu.launch_poison(region, key);
    gpu.sync("poisoning");
  }
  std::int64_t unpoisoned(Region region, std::uint64_t key) override {
    const Gpu& gpu = on(region.gpu);
    return static_cast<std::int64_t>(gpu.summed([&] {
      gpu::unpoisoned_kernel<<<gpu.grid(words_of(region.bytes)), gpu::kThreads, 0, gpu.stream>>>(
          region.data, region.bytes, key, gpu.sum);
    }));
  }
  std::uint64_t hash(Region region) override {
    const Gpu& gpu = on(region.gpu);
    const std::uint64_t sum = gpu.summed([&] {
      gpu::hash_kernel<<<gpu.grid(words_of(region.bytes)), gpu::kThreads, 0, gpu.stream>>>(region.data, region.bytes,
                                                                                           hash_key_, gpu.sum);
    });
    return hash_end(hash_key_, region.bytes, sum);
  }
  void copy(Copy copy) override {
    if (copy.from.bytes == 0) return;
    const Gpu& gpu = on(copy.from.gpu);
    gpu.launch_copy(copy.to.data, copy.from);
    gpu.sync("copying");
  }
  PassSums pass(const PassPlan& plan) override {
    const Gpu& gpu = on(plan.got.gpu);
    return run_pass(plan, gpu.units, gpu.pass_sums, gpu.stream);
  }
  Repetition repeat(const RepetitionPlan& plan, Peer& peer) override;
  void run_reference(Reference* reference, const void* args) override;
  double canary() override;
  std::vector<std::string> complaints() override;

 private:
  void open(int number);
  void connect();
  void learn_facts();
  void warm_up();
  void stage(const RepetitionPlan& plan);
  double quiesce();
  void prepare_window(const RepetitionPlan& plan, const Gpu& gpu);
  void open_window(const RepetitionPlan& plan, std::uint32_t* go);
  void close_window(const RepetitionPlan& plan, Repetition& result);
  double canary_on(const Gpu& gpu);

  // That one, made current: what is launched next is launched there.
  Gpu& on(int gpu) {
    check(cudaSetDevice(gpu), "selecting the GPU");
    return *gpus_[static_cast<std::size_t>(gpu)];
  }
  void sync_all(const char* what) {
    for (const auto& gpu : gpus_) on(gpu->ordinal).sync(what);
  }

  Facts facts_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<std::unique_ptr<Buffer>> staging_;  // one a fill, grown as needed
  std::uint64_t hash_key_ = 0;
};

void CudaDevice::open(int number) {
  check(cudaInitDevice(number, cudaDeviceScheduleSpin | cudaDeviceMapHost, cudaInitDeviceFlagsAreValid),
        "opening the GPU");
  check(cudaSetDevice(number), "selecting the GPU");
  cudaDeviceProp prop{};
  check(cudaGetDeviceProperties(&prop, number), "device properties");
  gpus_.push_back(std::make_unique<Gpu>(number, prop));
}

// Each reaches the memory of each: a reference runs on one GPU over the tensors of all.
void CudaDevice::connect() {
  const int count = static_cast<int>(gpus_.size());
  for (int from = 0; from < count; ++from) {
    on(from);
    for (int to = 0; to < count; ++to) {
      int reaches = 1;
      if (from == to) continue;
      check(cudaDeviceCanAccessPeer(&reaches, from, to), "peer access");
      if (reaches == 0)
        throw WrongGpus("GPU " + std::to_string(from) + " cannot reach the memory of GPU " + std::to_string(to));
      check(cudaDeviceEnablePeerAccess(to, 0), "peer access");
    }
  }
}

void CudaDevice::learn_facts() {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "driver version");
  check(cudaRuntimeGetVersion(&runtime), "runtime version");
  facts_.kind = "cuda";
  facts_.runtime = "CUDA " + version_text(runtime);
  facts_.driver = "CUDA " + version_text(driver);
  for (const auto& gpu : gpus_) {
    cudaDeviceProp prop{};
    check(cudaGetDeviceProperties(&prop, gpu->ordinal), "device properties");
    if (gpu->ordinal > 0 && facts_.name != prop.name)
      throw WrongGpus("GPUs of two models: " + facts_.name + " and " + prop.name);
    facts_.name = prop.name;
    facts_.uuid += (gpu->ordinal > 0 ? "," : "") + uuid_text(prop.uuid);
    facts_.units = prop.multiProcessorCount;
    facts_.memory_bytes = prop.totalGlobalMem;
    facts_.l2_bytes = static_cast<std::uint64_t>(prop.l2CacheSize);
  }
  if (const auto& nvml = gpus_.front()->nvml) {
    facts_.driver = nvml->driver_version();
    facts_.clock_mhz_max = nvml->clock_mhz_max(false).value_or(0);
    facts_.memory_clock_mhz_max = nvml->clock_mhz_max(true).value_or(0);
  }
  if (getentropy(&hash_key_, sizeof hash_key_) != 0) throw DeviceFault("no entropy");
}

// Loads every kernel and lets the clocks rise: neither may happen inside a window.
void CudaDevice::warm_up() {
  canary();
  for (const auto& gpu : gpus_) {
    const Region words{gpu->scratch->region().data, 4096, gpu->ordinal};
    poison(words, 1);
    unpoisoned(words, 1);
    hash(words);
    zero(words);
  }
  quiesce();
}

// Inputs are made in private memory first and only copied inside the stretch: the shorter the stretch, the less a slice
// of the worker's can hide in it.
void CudaDevice::stage(const RepetitionPlan& plan) {
  if (staging_.size() < plan.fills.size()) staging_.resize(plan.fills.size());
  std::vector<std::pair<const std::byte*, const std::byte*>> moved;  // where a tensor is, where its staged copy is
  for (std::size_t i = 0; i < plan.fills.size(); ++i) {
    Fill fill = plan.fills[i];
    auto& buffer = staging_[i];
    if (!buffer || buffer->region().bytes < fill.to.bytes || buffer->region().gpu != fill.to.gpu) {
      buffer.reset();
      buffer = cuda_private(fill.to.bytes, fill.to.gpu);
    }
    for (Region& read : fill.reads)
      for (const auto& [from, staged] : moved)
        if (read.data == from) read.data = const_cast<std::byte*>(staged);
    const Gpu& gpu = on(fill.to.gpu);
    launch_fill(fill, plan.seed, buffer->region().data, gpu.scratch->region().data, gpu.units, gpu.stream);
    moved.emplace_back(fill.to.data, buffer->region().data);
  }
  sync_all("generating inputs");
}

// The longest that a GPU's second null kernel takes. The first GPU comes last, here and when the window opens and
// closes: its stamps are the window's.
double CudaDevice::quiesce() {
  for (const auto& gpu : gpus_) {
    on(gpu->ordinal);
    gpu::null_kernel<<<1, 32, 0, gpu->stream>>>();
  }
  sync_all("quiescence");
  double longest_us = 0;
  for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
    on((*gpu)->ordinal);
    const auto start = Clock::now();
    gpu::quiet_kernel<<<1, 1, 0, (*gpu)->stream>>>((*gpu)->stamps.get());
    (*gpu)->sync("quiescence");
    longest_us = std::max(longest_us, us_since(start));
  }
  return longest_us;
}

void CudaDevice::prepare_window(const RepetitionPlan& plan, const Gpu& gpu) {
  for (const Region& region : plan.poisoned)
    if (region.bytes && region.gpu == gpu.ordinal) gpu.launch_poison(region, plan.poison);
  // Inputs come last: what a copy engine of the worker's could have of them before A is the time of the eviction.
  for (std::size_t i = 0; i < plan.fills.size(); ++i) {
    const Region& to = plan.fills[i].to;
    if (to.gpu == gpu.ordinal) gpu.launch_copy(to.data, {staging_[i]->region().data, to.bytes, to.gpu});
  }
  if (plan.evict)
    gpu::evict_kernel<<<gpu.units * 8, gpu::kThreads, 0, gpu.stream>>>(
        reinterpret_cast<const uint4*>(gpu.scratch->region().data), gpu.evict_words,
        reinterpret_cast<std::uint32_t*>(gpu.sum));
}

void CudaDevice::open_window(const RepetitionPlan& plan, std::uint32_t* go) {
  Gpu& first = *gpus_.front();
  gpu::AllStamps all{};
  for (const auto& gpu : gpus_) all.of[all.gpus++] = gpu->stamps.get();
  for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
    prepare_window(plan, on((*gpu)->ordinal));
    if (gpu->get() != &first) gpu::hold_kernel<<<1, 1, 0, (*gpu)->stream>>>((*gpu)->stamps.get(), all.of[0]);
  }
  if (gpus_.size() == 1)
    gpu::open_kernel<<<1, 1, 0, first.stream>>>(all.of[0], go, plan.epoch);
  else
    gpu::open_first_kernel<<<1, 1, 0, first.stream>>>(all, go, plan.epoch);
  check(cudaGetLastError(), "opening the window");
}

void CudaDevice::close_window(const RepetitionPlan& plan, Repetition& result) {
  std::vector<gpu::SnapshotPlan> snapshots(gpus_.size());
  for (const Copy& copy : plan.snapshots) {
    gpu::SnapshotPlan& snapshot = snapshots[static_cast<std::size_t>(copy.from.gpu)];
    if (snapshot.count == gpu::kRegionsMax) throw DeviceFault("too many outputs in one snapshot");
    snapshot.regions[snapshot.count++] = {copy.from.data, copy.to.data, copy.from.bytes, snapshot.chunks};
    snapshot.chunks += chunks_of(copy.from.bytes);
  }
  std::vector<Clock::time_point> launched(gpus_.size()), started(gpus_.size());
  for (std::size_t g = gpus_.size(); g-- > 0;) {
    const Gpu& gpu = on(static_cast<int>(g));
    snapshots[g].key = plan.order;
    const int blocks =
        static_cast<int>(std::clamp<std::uint64_t>(snapshots[g].chunks, 1, static_cast<std::uint64_t>(gpu.units) * 8));
    launched[g] = Clock::now();
    gpu::snapshot_kernel<<<blocks, gpu::kThreads, 0, gpu.stream>>>(snapshots[g], gpus_[g]->stamps.get(), gpu.sum);
    check(cudaGetLastError(), "snapshot");
  }
  for (std::size_t waiting = gpus_.size(); waiting > 0;) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      if (started[g] != Clock::time_point() || gpus_[g]->stamps->started == 0) continue;
      started[g] = Clock::now();
      --waiting;
    }
    if (Clock::now() - launched.front() > kSnapshotStart)
      throw DeviceFault("the snapshot kernel does not start: the GPU hangs");
  }
  sync_all("snapshot");
  const Gpu& first = on(0);
  unsigned long long b = 0;
  check(cudaMemcpyAsync(&b, first.sum, sizeof b, cudaMemcpyDeviceToHost, first.stream), "stamp B");
  first.sync("stamp B");
  gpu::Stamps& stamps = *gpus_.front()->stamps.get();
  // Closed when the last GPU's snapshot starts: whoever works on another GPU for longer has a longer window.
  const auto last = *std::max_element(started.begin(), started.end());
  const double later_us = std::chrono::duration<double, std::micro>(last - started.front()).count();
  result.window_us = (static_cast<double>(b) - static_cast<double>(stamps.a)) * 1e-3 + later_us;
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    const gpu::Stamps& own = *gpus_[g]->stamps.get();
    result.stretch_us =
        std::max(result.stretch_us, (static_cast<double>(own.a) - static_cast<double>(own.quiet)) * 1e-3);
    result.start_us =
        std::max(result.start_us, std::chrono::duration<double, std::micro>(started[g] - launched[g]).count());
  }
}

Repetition CudaDevice::repeat(const RepetitionPlan& plan, Peer& peer) {
  Repetition result;
  stage(plan);
  on(0);
  const RegisteredPage page(peer.go_word());
  for (const auto& gpu : gpus_) {
    on(gpu->ordinal);
    check(cudaCtxResetPersistingL2Cache(), "resetting L2 set-aside");
    check(cudaMemsetAsync(gpu->sum, 0xff, sizeof *gpu->sum, gpu->stream), "stamp B");
    gpu->stamps->quiet = 0;
    gpu->stamps->ready = 0;
    gpu->stamps->a = 0;
    gpu->stamps->started = 0;
  }
  result.quiescence_us = quiesce();
  open_window(plan, page.word());
  peer.wake();
  result.ended = peer.wait_done(plan.epoch, plan.deadline);
  if (result.ended == Ended::done) {
    close_window(plan, result);
    result.worker_us = peer.worker_us();
  } else {
    sync_all("a window that did not close");
  }
  on(0);  // whose page it is
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
  const Gpu& gpu = on(0);
  kbench_exec exec{&blocks, nullptr, scratch_of, gpu.stream};
  const int rc = reference(args, &exec);
  const cudaError_t done = cudaStreamSynchronize(gpu.stream);
  for (void* block : blocks) cudaFree(block);
  if (rc != 0) throw DeviceFault("the reference returned " + std::to_string(rc));
  check(done, "the reference");
}

double CudaDevice::canary_on(const Gpu& gpu) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "canary");
  check(cudaEventCreate(&end), "canary");
  std::byte* base = gpu.scratch->region().data;
  check(cudaEventRecord(begin, gpu.stream), "canary");
  gpu::canary_kernel<<<gpu.units * 8, gpu::kThreads, 0, gpu.stream>>>(reinterpret_cast<float*>(gpu.sum),
                                                                      kCanaryRounds / 100);
  gpu.launch_copy(base + kCanaryBytes / 2, {base, kCanaryBytes / 2, gpu.ordinal});
  check(cudaEventRecord(end, gpu.stream), "canary");
  gpu.sync("canary");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "canary");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return static_cast<double>(ms) * 1e3;
}

double CudaDevice::canary() {
  double slowest = 0;
  for (const auto& gpu : gpus_) slowest = std::max(slowest, canary_on(on(gpu->ordinal)));
  return slowest;
}

std::vector<std::string> CudaDevice::complaints() {
  std::vector<std::string> all;
  for (const auto& gpu : gpus_) {
    if (!gpu->nvml) continue;
    const GpuReading reading = gpu->nvml->read();
    auto found = slowdown_names(reading.reasons.value_or(0));
    if (reading.compute_processes.value_or(0) > 1)
      found.push_back("foreign process: " + std::to_string(*reading.compute_processes - 1) +
                      " besides the verifier on the GPU");
    if (reading.ecc_uncorrected.value_or(0) > gpu->ecc_at_start)
      found.push_back("ecc: uncorrected errors rose during the grading");
    for (std::string& text : found)
      all.push_back(gpus_.size() == 1 ? text : text + ", GPU " + std::to_string(gpu->ordinal));
  }
  return all;
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int gpus) {
  // Before the first CUDA call: no MPS daemon of anybody's, no JIT cache that somebody wrote, no lazy loading inside a
  // window.
  setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/kbench-mps", 1);
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  return std::make_unique<CudaDevice>(gpus);
}

}  // namespace kbench::verify
