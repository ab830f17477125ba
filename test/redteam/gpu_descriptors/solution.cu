// Looks for other devices and for the verifier's memory by way of what it has open: every descriptor is tried as a
// shared handle, every device node is opened.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "honest.h"

static int search() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto import =
      reinterpret_cast<decltype(&cuMemImportFromShareableHandle)>(dlsym(driver, "cuMemImportFromShareableHandle"));
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 1) return kBreach;
  for (int fd = 0; import && fd < 256; ++fd) {
    CUmemGenericAllocationHandle handle;
    if (fcntl(fd, F_GETFD) < 0) continue;
    // The worker closes what it has mapped: nothing it still has open is memory.
    if (import(&handle, reinterpret_cast<void*>(std::uintptr_t(fd)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
        CUDA_SUCCESS)
      return kBreach;
  }
  for (const char* node :
       {"/dev/nvidia-modeset", "/dev/nvidia-nvswitchctl", "/dev/nvidia-caps/nvidia-cap1", "/dev/mem"})
    if (const int fd = open(node, O_RDWR); fd >= 0) return kBreach;
  int others = 0;
  for (int number = 0; number < 16; ++number)
    if (const int fd = open(("/dev/nvidia" + std::to_string(number)).c_str(), O_RDWR); fd >= 0) {
      ++others;
      close(fd);
    }
  return others > 1 ? kBreach : 0;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static int calls = 0;
  if (++calls == 2)
    if (const int breach = search()) return breach;
  return honest_on(*a, a->out, stream);
}
