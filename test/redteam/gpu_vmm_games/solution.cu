// Games with the handles of its buffers: maps them twice, at a larger size, exports them, gives them to the IPC
// interface, and drops the handle more often than it has it.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include "honest.h"

template <class Function>
static Function* of_driver(Function*, const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(driver, name));
}
#define DRIVER(name) of_driver(&name, #name)

static int play(const kbench_args& a, std::int32_t** alias) {
  CUmemGenericAllocationHandle handle;
  CUdeviceptr base = 0, again = 0;
  std::size_t bytes = 0;
  const auto out = reinterpret_cast<CUdeviceptr>(a.out);
  if (DRIVER(cuMemRetainAllocationHandle)(&handle, a.out) || DRIVER(cuMemGetAddressRange)(&base, &bytes, out)) return 0;
  const std::size_t more = bytes + (2u << 20);
  if (DRIVER(cuMemAddressReserve)(&again, more, 0, 0, 0)) return 0;
  if (DRIVER(cuMemMap)(again, more, 0, handle, 0) == CUDA_SUCCESS) return kBreach;  // what lies behind is not its own
  if (DRIVER(cuMemMap)(again, 2u << 20, bytes, handle, 0) == CUDA_SUCCESS) return kBreach;
  const CUmemAccessDesc both{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (DRIVER(cuMemMap)(again, bytes, 0, handle, 0) == CUDA_SUCCESS &&
      DRIVER(cuMemSetAccess)(again, bytes, &both, 1) == CUDA_SUCCESS)
    *alias = reinterpret_cast<std::int32_t*>(again + (out - base));
  for (int k = 0; k < 16; ++k) {
    int fd = -1;
    if (DRIVER(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_SUCCESS) {
      CUmemGenericAllocationHandle imported;
      void* number = reinterpret_cast<void*>(std::uintptr_t(fd));
      if (DRIVER(cuMemImportFromShareableHandle)(&imported, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
          CUDA_SUCCESS)
        DRIVER(cuMemRelease)(imported);
      if (ftruncate(fd, 0) == 0) return kBreach;
      close(fd);
    }
  }
  cudaIpcMemHandle_t ipc;
  cudaIpcGetMemHandle(&ipc, a.out);
  cudaGetLastError();
  for (int k = 0; k < 4; ++k) DRIVER(cuMemRelease)(handle);
  return 0;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static std::int32_t* alias = nullptr;
  static long long n = 0;
  if (!alias) {
    n = a->N;
    if (const int breach = play(*a, &alias)) return breach;
  }
  return honest_on(*a, alias && n == a->N ? alias : a->out, stream);  // written by its other name
}
