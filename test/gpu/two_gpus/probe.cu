// What the protocol on two GPUs stands on, measured: nvcc and two GPUs are all it needs.
//
//   nvcc -O2 -std=c++17 -arch=native probe.cu -lcuda -o probe && ./probe
//
//   peers       whether each reaches the other's memory, and how fast
//   clocks      offset and drift of the two %globaltimers, by a ping-pong through host memory: no clock joins them
//   memory      a buffer of GPU 1 in two processes, read and written by kernels of both GPUs
//   bracket     null windows as the verifier takes them: GPU 1 held until A, closed when the last snapshot starts
//   quiescence  the second null kernel of each GPU, with nothing and with a worker's kernel resident on GPU 1
//   early       a worker that says done while GPU 1 still works: when each snapshot starts, and what is in it
//
// Two processes: the verifier (the parent) owns memory and windows; the worker does what the page tells it.
#include <cuda.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                     \
  do {                                                                                  \
    const int error_ = static_cast<int>(call);                                          \
    if (error_ != 0) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, error_); \
      _exit(3);                                                                         \
    }                                                                                   \
  } while (0)

namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr unsigned long long kPatienceNs = 2'000'000'000;  // of every loop in a kernel
constexpr int kWindows = 60;
constexpr std::uint32_t kPoison = 0xdeadbeefu;

enum Order : std::uint32_t { kRead, kNull, kResident, kEarly, kLeave };

// Both processes have it, and the GPUs of both may write it.
struct Page {
  std::uint32_t go;  // written by the kernel that opens the window
  std::atomic<std::uint32_t> done;
  std::uint32_t order, argument;  // before go
  std::uint64_t sums[2];          // what the worker read, by GPU
  double gb_s[2];
  volatile unsigned long long stamps[2][4];  // of each GPU: quiet, ready, a, started
};
enum Stamp { kQuiet, kReady, kA, kStarted };
Page *page, *of_gpus;  // the same one, as the host and as the verifier's kernels address it

using Clock = std::chrono::steady_clock;
double us_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("%-34s median %9.2f  least %9.2f  most %9.2f us\n", what, values[values.size() / 2], values.front(),
              values.back());
}

__device__ unsigned long long now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__global__ void nothing() {}
__global__ void fill(std::uint32_t* to, std::size_t n, std::uint32_t first) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = first + static_cast<std::uint32_t>(i);
}
__global__ void set(std::uint32_t* to, std::size_t n, std::uint32_t value) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = value;
}
__global__ void add_up(const uint4* from, std::size_t n, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const uint4 v = __ldcs(from + i);
    mine += std::uint64_t{v.x} + v.y + v.z + v.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_xor_sync(~0u, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
__global__ void wait_ns(unsigned long long ns) {
  const unsigned long long begin = now_ns();
  while (now_ns() - begin < ns) {
  }
}

// ---- clocks

struct Ball {
  volatile std::uint32_t there, back;
};
__global__ void ping(Ball* ball, int rounds, unsigned long long* sent, unsigned long long* received) {
  const unsigned long long begin = now_ns();
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    sent[i - 1] = now_ns();
    ball->there = i;
    __threadfence_system();
    while (ball->back != i && now_ns() - begin < kPatienceNs) {
    }
    received[i - 1] = now_ns();
  }
}
__global__ void pong(Ball* ball, int rounds, unsigned long long* seen) {
  const unsigned long long begin = now_ns();
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    while (ball->there != i && now_ns() - begin < kPatienceNs) {
    }
    seen[i - 1] = now_ns();
    ball->back = i;
    __threadfence_system();
  }
}

// ---- windows

__global__ void quiet(Page* p, int gpu) { p->stamps[gpu][kQuiet] = now_ns(); }
__global__ void hold(Page* p) {
  const unsigned long long begin = now_ns();
  p->stamps[1][kReady] = begin;
  __threadfence_system();
  while (p->stamps[0][kA] == 0 && now_ns() - begin < kPatienceNs) {
  }
  p->stamps[1][kA] = now_ns();
}
__global__ void open(Page* p, std::uint32_t epoch) {
  const unsigned long long begin = now_ns();
  while (p->stamps[1][kReady] == 0 && now_ns() - begin < kPatienceNs) {
  }
  p->stamps[0][kA] = now_ns();
  __threadfence_system();
  *reinterpret_cast<volatile std::uint32_t*>(&p->go) = epoch;
  __threadfence_system();
}
__global__ void snapshot(Page* p, int gpu, const std::uint32_t* from, std::size_t n, unsigned long long* stale,
                         unsigned long long* b) {
  if (threadIdx.x == 0) {
    const unsigned long long start = now_ns();
    atomicMin(b, start);
    if (blockIdx.x == 0) p->stamps[gpu][kStarted] = start;
  }
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    mine += from[i] == kPoison;
  if (mine > 0) atomicAdd(stale, mine);
}

// ---- memory of two processes

void send_descriptor(int socket, int fd) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1, message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(socket, &message, 0) < 0) _exit(4);
}
int receive_descriptor(int socket) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1, message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) < 0) _exit(5);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

std::uint32_t* mapped(CUmemGenericAllocationHandle handle) {
  CUdeviceptr at = 0;
  CHECK(cuMemAddressReserve(&at, kBytes, 0, 0, 0));
  CHECK(cuMemMap(at, kBytes, 0, handle, 0));
  CUmemAccessDesc access[2] = {};
  for (int gpu = 0; gpu < 2; ++gpu)
    access[gpu] = {{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemSetAccess(at, kBytes, access, 2));
  return reinterpret_cast<std::uint32_t*>(at);
}

struct Gpu {
  cudaStream_t stream;
  unsigned long long* words;  // four, on this GPU
};
Gpu gpus[2];
std::uint32_t* buffers[2];  // one on each GPU

void open_gpus() {
  CHECK(cuInit(0));
  for (int gpu = 0; gpu < 2; ++gpu) {
    CHECK(cudaInitDevice(gpu, cudaDeviceScheduleSpin | cudaDeviceMapHost, cudaInitDeviceFlagsAreValid));
    CHECK(cudaSetDevice(gpu));
    CHECK(cudaStreamCreateWithFlags(&gpus[gpu].stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&gpus[gpu].words, 4 * sizeof(unsigned long long)));
  }
}

void synchronise(int gpu) { CHECK(cudaStreamSynchronize(gpus[gpu].stream)); }

// Sum of a buffer by a kernel of that GPU; the second time counts.
std::uint64_t read_by(int gpu, const std::uint32_t* from, double* gb_s) {
  CHECK(cudaSetDevice(gpu));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  unsigned long long sum = 0;
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMemsetAsync(gpus[gpu].words, 0, 8, gpus[gpu].stream));
    CHECK(cudaEventRecord(begin, gpus[gpu].stream));
    add_up<<<132 * 8, 256, 0, gpus[gpu].stream>>>(reinterpret_cast<const uint4*>(from), kBytes / 16, gpus[gpu].words);
    CHECK(cudaEventRecord(end, gpus[gpu].stream));
    CHECK(cudaMemcpyAsync(&sum, gpus[gpu].words, 8, cudaMemcpyDeviceToHost, gpus[gpu].stream));
    synchronise(gpu);
  }
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  *gb_s = double(kBytes) / (double(ms) * 1e-3) * 1e-9;
  return sum;
}

// ---- worker

void work(int socket) {
  open_gpus();
  for (std::uint32_t*& buffer : buffers) {
    CUmemGenericAllocationHandle handle;
    const int fd = receive_descriptor(socket);
    CHECK(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    buffer = mapped(handle);
  }
  const auto* go = reinterpret_cast<std::atomic<std::uint32_t>*>(&page->go);
  std::uint32_t seen = 0;
  page->done = 1000000;  // ready
  for (;;) {
    std::uint32_t next;
    while ((next = go->load(std::memory_order_acquire)) == seen) {
    }
    seen = next;
    if (page->order == kLeave) _exit(0);
    if (page->order == kRead) {
      for (int gpu = 0; gpu < 2; ++gpu) page->sums[gpu] = read_by(gpu, buffers[1], &page->gb_s[gpu]);
    } else {
      for (int gpu = 1; gpu >= 0; --gpu) {
        CHECK(cudaSetDevice(gpu));
        if (gpu == 1 && page->order != kNull) wait_ns<<<1, 128, 0, gpus[gpu].stream>>>(page->argument * 1000ull);
        if (page->order == kEarly)
          set<<<132, 256, 0, gpus[gpu].stream>>>(buffers[gpu], kBytes / 4, 1);
        else
          nothing<<<1, 32, 0, gpus[gpu].stream>>>();
      }
      synchronise(0);
      if (page->order == kNull) synchronise(1);
    }
    page->done.store(seen, std::memory_order_release);
    if (page->order == kEarly) synchronise(1);
  }
}

// ---- verifier

struct Window {
  double us, quiescence[2], stretch[2], start[2], later, stale[2];
};

double quiescence_of(int gpu) {
  CHECK(cudaSetDevice(gpu));
  const auto begin = Clock::now();
  quiet<<<1, 1, 0, gpus[gpu].stream>>>(of_gpus, gpu);
  synchronise(gpu);
  return us_between(begin, Clock::now());
}

void first_null() {
  for (int gpu = 0; gpu < 2; ++gpu) {
    CHECK(cudaSetDevice(gpu));
    nothing<<<1, 32, 0, gpus[gpu].stream>>>();
  }
  for (int gpu = 0; gpu < 2; ++gpu) {
    CHECK(cudaSetDevice(gpu));
    synchronise(gpu);
  }
}

void await(std::uint32_t epoch) {
  const auto begin = Clock::now();
  while (page->done.load(std::memory_order_acquire) != epoch) {
    if (us_between(begin, Clock::now()) > 20e6) {
      std::fprintf(stderr, "the worker does not answer\n");
      _exit(6);
    }
  }
}

Window window(std::uint32_t epoch, Order order, std::uint32_t argument) {
  Window w{};
  for (auto& own : page->stamps)
    for (auto& stamp : own) stamp = 0;
  page->order = order;
  page->argument = argument;
  for (int gpu = 0; gpu < 2; ++gpu) {
    CHECK(cudaSetDevice(gpu));
    CHECK(cudaMemsetAsync(gpus[gpu].words, 0xff, 8, gpus[gpu].stream));   // B
    CHECK(cudaMemsetAsync(gpus[gpu].words + 1, 0, 8, gpus[gpu].stream));  // stale words
  }
  first_null();
  for (int gpu = 1; gpu >= 0; --gpu) w.quiescence[gpu] = quiescence_of(gpu);
  for (int gpu = 1; gpu >= 0; --gpu) {
    CHECK(cudaSetDevice(gpu));
    set<<<132 * 8, 256, 0, gpus[gpu].stream>>>(buffers[gpu], kBytes / 4, kPoison);
    if (gpu == 1)
      hold<<<1, 1, 0, gpus[gpu].stream>>>(of_gpus);
    else
      open<<<1, 1, 0, gpus[gpu].stream>>>(of_gpus, epoch);
  }
  CHECK(cudaGetLastError());
  await(epoch);
  Clock::time_point launched[2], started[2];
  for (int gpu = 1; gpu >= 0; --gpu) {
    CHECK(cudaSetDevice(gpu));
    launched[gpu] = Clock::now();
    snapshot<<<132 * 8, 256, 0, gpus[gpu].stream>>>(of_gpus, gpu, buffers[gpu], kBytes / 4, gpus[gpu].words + 1,
                                                    gpus[gpu].words);
    CHECK(cudaGetLastError());
  }
  for (int waiting = 3; waiting != 0;)
    for (int gpu = 0; gpu < 2; ++gpu)
      if ((waiting & 1 << gpu) != 0 && page->stamps[gpu][kStarted] != 0)
        started[gpu] = Clock::now(), waiting &= ~(1 << gpu);
  unsigned long long words[2][2];
  for (int gpu = 0; gpu < 2; ++gpu) {
    CHECK(cudaSetDevice(gpu));
    CHECK(cudaMemcpyAsync(words[gpu], gpus[gpu].words, 16, cudaMemcpyDeviceToHost, gpus[gpu].stream));
    synchronise(gpu);
    w.start[gpu] = us_between(launched[gpu], started[gpu]);
    w.stretch[gpu] = double(page->stamps[gpu][kA] - page->stamps[gpu][kQuiet]) * 1e-3;
    w.stale[gpu] = double(words[gpu][1]) / double(kBytes / 4);
  }
  w.later = std::max(0.0, us_between(started[0], started[1]));
  w.us = double(words[0][0] - page->stamps[0][kA]) * 1e-3 + w.later;
  return w;
}

void show_peers() {
  double gb_s = 0;
  for (int from = 0; from < 2; ++from) {
    int reaches = 0;
    CHECK(cudaDeviceCanAccessPeer(&reaches, from, 1 - from));
    std::printf("peers       GPU %d reaches GPU %d: %s", from, 1 - from, reaches != 0 ? "yes" : "no");
    if (reaches != 0) {
      CHECK(cudaSetDevice(from));
      CHECK(cudaDeviceEnablePeerAccess(1 - from, 0));
      (void)read_by(from, buffers[1 - from], &gb_s);
      std::printf(", reads at %.0f GB/s", gb_s);
    }
    std::printf("\n");
  }
  (void)read_by(1, buffers[1], &gb_s);
  std::printf("peers       GPU 1 reads its own at %.0f GB/s\n", gb_s);
}

// The clock of GPU 1 less that of GPU 0, in ns, and the shortest round.
void offset(double* ns, double* round_ns) {
  constexpr int kRounds = 500;
  unsigned long long* times[3];
  Ball* ball;
  CHECK(cudaMallocHost(&ball, sizeof *ball));
  std::memset(ball, 0, sizeof *ball);
  for (auto*& each : times) CHECK(cudaMallocHost(&each, kRounds * sizeof *each));
  CHECK(cudaSetDevice(1));
  pong<<<1, 1, 0, gpus[1].stream>>>(ball, kRounds, times[2]);
  CHECK(cudaSetDevice(0));
  ping<<<1, 1, 0, gpus[0].stream>>>(ball, kRounds, times[0], times[1]);
  synchronise(0);
  CHECK(cudaSetDevice(1));
  synchronise(1);
  *round_ns = 1e18;
  for (int i = kRounds / 5; i < kRounds; ++i) {
    const double round = double(times[1][i] - times[0][i]);
    if (round >= *round_ns) continue;
    *round_ns = round;
    *ns = double(static_cast<long long>(times[2][i] - times[0][i])) - round / 2;
  }
  for (auto* each : times) CHECK(cudaFreeHost(each));
  CHECK(cudaFreeHost(ball));
}

void show_clocks() {
  double first = 0, last = 0, round = 0;
  offset(&first, &round);  // also loads the kernels
  offset(&first, &round);
  const auto begin = Clock::now();
  std::printf("clocks      GPU 1 less GPU 0: %.0f ns, +- %.0f ns (half of the shortest round)\n", first, round / 2);
  for (int i = 0; i < 3; ++i) {
    usleep(1'000'000);
    offset(&last, &round);
    const double seconds = us_between(begin, Clock::now()) * 1e-6;
    std::printf("clocks      after %.2f s: %.0f ns, +- %.0f ns; drift %.1f ns/s\n", seconds, last, round / 2,
                (last - first) / seconds);
  }
}

void show_windows(std::uint32_t& epoch) {
  std::vector<double> us, later, quiescence[2], stretch[2], start[2];
  for (int i = 0; i < kWindows + 5; ++i) {
    const Window w = window(++epoch, kNull, 0);
    if (i < 5) continue;
    us.push_back(w.us), later.push_back(w.later);
    for (int gpu = 0; gpu < 2; ++gpu) {
      quiescence[gpu].push_back(w.quiescence[gpu]);
      stretch[gpu].push_back(w.stretch[gpu]), start[gpu].push_back(w.start[gpu]);
    }
  }
  print("bracket     null window", us);
  print("bracket     GPU 1's start behind 0's", later);
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string of = " of GPU " + std::to_string(gpu);
    print(("bracket     quiescence" + of).c_str(), quiescence[gpu]);
    print(("bracket     stretch" + of).c_str(), stretch[gpu]);
    print(("bracket     launch to start" + of).c_str(), start[gpu]);
  }
}

void show_quiescence(std::uint32_t& epoch) {
  std::vector<double> us[2];
  for (int i = 0; i < 10; ++i) {
    (void)window(++epoch, kResident, 60'000);  // left behind
    first_null();
    for (int gpu = 1; gpu >= 0; --gpu) us[gpu].push_back(quiescence_of(gpu));
    usleep(70'000);
  }
  print("quiescence  GPU 0, resident on GPU 1", us[0]);
  print("quiescence  GPU 1, resident on GPU 1", us[1]);
}

void show_early(std::uint32_t& epoch) {
  for (const std::uint32_t longer : {100u, 300u, 1000u, 5000u}) {
    std::vector<double> us, start[2], later;
    double stale[2] = {};
    for (int i = 0; i < 20; ++i) {
      const Window w = window(++epoch, kEarly, longer);
      us.push_back(w.us), later.push_back(w.later);
      for (int gpu = 0; gpu < 2; ++gpu) start[gpu].push_back(w.start[gpu]), stale[gpu] += w.stale[gpu] > 0;
      usleep(2 * longer);
    }
    std::printf("early       GPU 1 works %u us longer; stale snapshots: %.0f of 20 on GPU 0, %.0f of 20 on GPU 1\n",
                longer, stale[0], stale[1]);
    print("early         window", us);
    print("early         launch to start, GPU 0", start[0]);
    print("early         launch to start, GPU 1", start[1]);
    print("early         GPU 1's start behind 0's", later);
  }
}

void make_buffers(int socket) {
  for (int gpu = 0; gpu < 2; ++gpu) {
    CUmemAllocationProp property{};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemCreate(&handle, kBytes, &property, 0));
    int fd = -1;
    CHECK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    buffers[gpu] = mapped(handle);
    send_descriptor(socket, fd);
  }
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  page = static_cast<Page*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int pair[2];
  if (page == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 2;
  const pid_t worker = fork();  // before the first call into CUDA
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it spins on the page
    work(pair[1]);
  }
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (count < 2) {
    std::printf("%d GPU: needs two\n", count);
    return 2;
  }
  open_gpus();
  make_buffers(pair[0]);
  CHECK(cudaHostRegister(page, 4096, cudaHostRegisterMapped | cudaHostRegisterPortable));
  CHECK(cudaHostGetDevicePointer(reinterpret_cast<void**>(&of_gpus), page, 0));
  await(1000000);
  show_peers();
  show_clocks();

  std::uint32_t epoch = 0;
  CHECK(cudaSetDevice(0));
  fill<<<132 * 8, 256, 0, gpus[0].stream>>>(buffers[1], kBytes / 4, 1);  // GPU 0 writes GPU 1's memory
  synchronise(0);
  double gb_s = 0;
  const std::uint64_t right = read_by(1, buffers[1], &gb_s);
  page->order = kRead;
  reinterpret_cast<std::atomic<std::uint32_t>*>(&page->go)->store(++epoch, std::memory_order_release);
  await(epoch);
  for (int gpu = 0; gpu < 2; ++gpu)
    std::printf("memory      GPU 1's buffer, read in the worker by GPU %d: %s, %.0f GB/s\n", gpu,
                page->sums[gpu] == right ? "right" : "WRONG", page->gb_s[gpu]);
  show_windows(epoch);
  show_quiescence(epoch);
  show_early(epoch);

  page->order = kLeave;
  reinterpret_cast<std::atomic<std::uint32_t>*>(&page->go)->store(++epoch, std::memory_order_release);
  int status = 0;
  waitpid(worker, &status, 0);
  std::printf("probe: done\n");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
