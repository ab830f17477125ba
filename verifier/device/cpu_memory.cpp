#include "verifier/device/cpu_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "verifier/device/cpu_host.h"
#include "verifier/device/kernels.h"

namespace kbench::verify {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kReserveBytes = 256ULL << 20;  // left for the verifier itself and the worker's own needs

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + kPageBytes - 1) / kPageBytes * kPageBytes;
}

[[noreturn]] void out_of_memory(std::uint64_t bytes, const char* why) {
  throw OutOfDeviceMemory("no " + std::to_string(bytes) + " bytes of memory: " + why);
}

void require_free(std::uint64_t bytes) {
  if (bytes > UINT64_MAX / 2 || bytes + kReserveBytes > cpu_free_bytes()) out_of_memory(bytes, "not that much is free");
}

class PrivateBuffer final : public Buffer {
 public:
  PrivateBuffer(std::uint64_t bytes, int gpu, bool ask) : bytes_(bytes), mapped_(whole_pages(bytes)), gpu_(gpu) {
    if (ask) require_free(mapped_);
    void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) out_of_memory(bytes, strerror(errno));
    madvise(memory, mapped_, MADV_DONTDUMP);
    memory_ = static_cast<std::byte*>(memory);
  }
  ~PrivateBuffer() override {
    explicit_bzero(memory_, mapped_);
    munmap(memory_, mapped_);
  }
  PrivateBuffer(const PrivateBuffer&) = delete;
  PrivateBuffer& operator=(const PrivateBuffer&) = delete;
  Region region() const override { return {memory_, bytes_, gpu_}; }

 private:
  std::uint64_t bytes_, mapped_;
  int gpu_;
  std::byte* memory_ = nullptr;
};

class MemfdBuffer final : public SharedBuffer {
 public:
  MemfdBuffer(std::uint64_t bytes, int gpu) : bytes_(bytes), mapped_(whole_pages(bytes + 2 * kGuardBytes)), gpu_(gpu) {
    require_free(mapped_);
    fd_ = memfd_create("kbench-tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd_ < 0) out_of_memory(bytes, strerror(errno));
    const int error = prepare();
    if (error != 0) {
      close(fd_);
      out_of_memory(bytes, strerror(error));
    }
  }
  ~MemfdBuffer() override {
    explicit_bzero(memory_, mapped_);
    munmap(memory_, mapped_);
    close(fd_);
  }
  MemfdBuffer(const MemfdBuffer&) = delete;
  MemfdBuffer& operator=(const MemfdBuffer&) = delete;

  Region tensor() const override { return {memory_ + kGuardBytes, bytes_, gpu_}; }
  Region front_guard() const override { return {memory_, kGuardBytes, gpu_}; }
  Region back_guard() const override { return {memory_ + kGuardBytes + bytes_, mapped_ - kGuardBytes - bytes_, gpu_}; }
  int fd() const override { return fd_; }
  std::uint64_t mapped_bytes() const override { return mapped_; }
  std::uint64_t tensor_offset() const override { return kGuardBytes; }

 private:
  // Its size must be sealed before a worker gets the descriptor: a file cut short kills who has it mapped, here the
  // verifier.
  int prepare() {
    if (ftruncate(fd_, static_cast<off_t>(mapped_)) != 0) return errno;
    if (const int error = posix_fallocate(fd_, 0, static_cast<off_t>(mapped_)); error != 0) return error;
    if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return errno;
    void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0);
    if (memory == MAP_FAILED) return errno;
    memory_ = static_cast<std::byte*>(memory);
    return 0;
  }

  std::uint64_t bytes_, mapped_;
  int gpu_;
  int fd_ = -1;
  std::byte* memory_ = nullptr;
};

}  // namespace

std::unique_ptr<Buffer> cpu_private(std::uint64_t bytes, int gpu) {
  return std::make_unique<PrivateBuffer>(bytes, gpu, true);
}
std::unique_ptr<Buffer> cpu_private_again(std::uint64_t bytes) {
  return std::make_unique<PrivateBuffer>(bytes, 0, false);
}
std::unique_ptr<SharedBuffer> cpu_shared(std::uint64_t bytes, int gpu) {
  return std::make_unique<MemfdBuffer>(bytes, gpu);
}

std::uint64_t cpu_free_bytes() {
  const MemoryFacts memory = read_memory();
  return std::min(memory.available, memory.limit > memory.used ? memory.limit - memory.used : 0);
}

}  // namespace kbench::verify
