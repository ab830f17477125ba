// CUDA errors as exceptions, and the few driver functions the verifier needs, found at run time: a verifier with CUDA
// compiled in still starts on a host without a driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <string>

#include "verifier/device/device.h"

namespace kbench::verify {

inline void check(cudaError_t rc, const char* what) {
  if (rc == cudaSuccess) return;
  cudaGetLastError();
  const std::string text = std::string(what) + ": " + cudaGetErrorString(rc);
  if (rc == cudaErrorMemoryAllocation) throw OutOfDeviceMemory(text);
  throw DeviceFault(text);
}

class Driver {
 public:
  static const Driver& get() {
    static const Driver driver;
    return driver;
  }
  decltype(&::cuMemCreate) mem_create;
  decltype(&::cuMemRelease) mem_release;
  decltype(&::cuMemMap) mem_map;
  decltype(&::cuMemUnmap) mem_unmap;
  decltype(&::cuMemAddressReserve) address_reserve;
  decltype(&::cuMemAddressFree) address_free;
  decltype(&::cuMemSetAccess) set_access;
  decltype(&::cuMemGetAllocationGranularity) granularity;
  decltype(&::cuMemExportToShareableHandle) export_handle;
  decltype(&::cuGetErrorString) error_string;

  void check(CUresult rc, const char* what) const {
    if (rc == CUDA_SUCCESS) return;
    const char* text = nullptr;
    error_string(rc, &text);
    const std::string message = std::string(what) + ": " + (text ? text : "unknown driver error");
    if (rc == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfDeviceMemory(message);
    throw DeviceFault(message);
  }

 private:
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw DeviceFault("no CUDA driver: libcuda.so.1 cannot be loaded");
    load(library, mem_create, "cuMemCreate");
    load(library, mem_release, "cuMemRelease");
    load(library, mem_map, "cuMemMap");
    load(library, mem_unmap, "cuMemUnmap");
    load(library, address_reserve, "cuMemAddressReserve");
    load(library, address_free, "cuMemAddressFree");
    load(library, set_access, "cuMemSetAccess");
    load(library, granularity, "cuMemGetAllocationGranularity");
    load(library, export_handle, "cuMemExportToShareableHandle");
    load(library, error_string, "cuGetErrorString");
  }
  template <class F>
  static void load(void* library, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function) throw DeviceFault(std::string("the CUDA driver lacks ") + name);
  }
};

}  // namespace kbench::verify
