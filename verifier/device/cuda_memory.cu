#include "verifier/device/cuda_memory.h"

#include <unistd.h>

#include <vector>

#include "verifier/device/cuda_check.h"
#include "verifier/device/kernels.h"

namespace kbench::verify {
namespace {

class Private : public Buffer {
 public:
  Private(std::uint64_t bytes, int gpu) {
    region_.bytes = bytes;
    region_.gpu = gpu;
    check(cudaSetDevice(gpu), "selecting the GPU");
    check(cudaMalloc(reinterpret_cast<void**>(&region_.data), bytes ? bytes : 1), "private device memory");
  }
  ~Private() override {
    // Scrubbed first: freed pages must never show another process what was here, whatever the driver promises.
    cudaSetDevice(region_.gpu);
    cudaMemset(region_.data, 0, region_.bytes);
    cudaDeviceSynchronize();
    cudaFree(region_.data);
  }
  Private(const Private&) = delete;
  Private& operator=(const Private&) = delete;
  Region region() const override { return region_; }

 private:
  Region region_;
};

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

class Shared : public SharedBuffer {
 public:
  Shared(std::uint64_t bytes, int gpu, int gpus) : bytes_(bytes), gpu_(gpu) {
    check(cudaSetDevice(gpu), "selecting the GPU");
    const Driver& driver = Driver::get();
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::size_t unit = 0;
    driver.check(driver.granularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "granularity");
    // The tensor starts right behind the front guard; the back guard starts at the next word and fills the rest of the
    // mapping.
    mapped_ = rounded_up(kGuardBytes + rounded_up(bytes, kWordBytes) + kGuardBytes, unit);
    driver.check(driver.mem_create(&handle_, mapped_, &prop, 0), "shared device memory");
    try {
      map(gpus);
    } catch (...) {
      release();
      throw;
    }
  }
  ~Shared() override {
    cudaSetDevice(gpu_);
    cudaMemset(base_, 0, mapped_);
    cudaDeviceSynchronize();
    release();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Region tensor() const override { return {base_ + kGuardBytes, bytes_, gpu_}; }
  Region front_guard() const override { return {base_, kGuardBytes, gpu_}; }
  Region back_guard() const override {
    const std::uint64_t start = kGuardBytes + rounded_up(bytes_, kWordBytes);
    return {base_ + start, mapped_ - start, gpu_};
  }
  int fd() const override { return fd_; }
  std::uint64_t mapped_bytes() const override { return mapped_; }
  std::uint64_t tensor_offset() const override { return kGuardBytes; }

 private:
  void map(int gpus) {
    const Driver& driver = Driver::get();
    CUdeviceptr address = 0;
    driver.check(driver.address_reserve(&address, mapped_, 0, 0, 0), "address range");
    base_ = reinterpret_cast<std::byte*>(address);
    driver.check(driver.mem_map(address, mapped_, 0, handle_, 0), "map shared memory");
    is_mapped_ = true;
    std::vector<CUmemAccessDesc> access(static_cast<std::size_t>(gpus));
    for (int gpu = 0; gpu < gpus; ++gpu)
      access[static_cast<std::size_t>(gpu)] = {{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    driver.check(driver.set_access(address, mapped_, access.data(), access.size()), "access to shared memory");
    driver.check(driver.export_handle(&fd_, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                 "export of shared memory");
  }
  void release() {
    const Driver& driver = Driver::get();
    if (fd_ >= 0) close(fd_);
    if (is_mapped_) driver.mem_unmap(reinterpret_cast<CUdeviceptr>(base_), mapped_);
    if (base_) driver.address_free(reinterpret_cast<CUdeviceptr>(base_), mapped_);
    driver.mem_release(handle_);
  }

  std::uint64_t bytes_, mapped_ = 0;
  int gpu_;
  CUmemGenericAllocationHandle handle_ = 0;
  std::byte* base_ = nullptr;
  bool is_mapped_ = false;
  int fd_ = -1;
};

}  // namespace

std::unique_ptr<Buffer> cuda_private(std::uint64_t bytes, int gpu) { return std::make_unique<Private>(bytes, gpu); }
std::unique_ptr<SharedBuffer> cuda_shared(std::uint64_t bytes, int gpu, int gpus) {
  return std::make_unique<Shared>(bytes, gpu, gpus);
}

}  // namespace kbench::verify
