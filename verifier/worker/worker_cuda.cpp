#include "verifier/worker/worker_cuda.h"

#include <dlfcn.h>
#include <stddef.h>

namespace kbench::worker {
namespace {

// Of cuda.h, declared here so that no CUDA header is needed. Values and layouts are part of the driver's stable ABI.
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUresult = int;
struct CUmemLocation {
  int type, id;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};
constexpr int kLocationDevice = 1;     // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kReadWrite = 3;          // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
constexpr int kPosixDescriptor = 1;    // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr unsigned kScheduleSpin = 1;  // CU_CTX_SCHED_SPIN
constexpr unsigned kNonBlocking = 1;   // CU_STREAM_NON_BLOCKING

struct Driver {
  CUresult (*init)(unsigned);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*primary_set_flags)(CUdevice, unsigned);
  CUresult (*primary_retain)(void** context, CUdevice);
  CUresult (*set_current)(void* context);
  CUresult (*synchronize)();
  CUresult (*stream_create)(void** stream, unsigned);
  CUresult (*import_handle)(unsigned long long* handle, void* os_handle, int type);
  CUresult (*reserve)(CUdeviceptr*, size_t, size_t alignment, CUdeviceptr, unsigned long long);
  CUresult (*map)(CUdeviceptr, size_t, size_t offset, unsigned long long handle, unsigned long long);
  CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t);
  CUresult (*release)(unsigned long long handle);
  CUresult (*error_name)(CUresult, const char**);
  CUresult (*event_create)(void** event, unsigned);
  CUresult (*event_record)(void* event, void* stream);
  CUresult (*event_elapsed)(float* ms, void* from, void* to);
  bool complete = false;
};

template <class Function>
bool find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

Driver load() {
  Driver d{};
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return d;
  d.complete = find(library, "cuInit", &d.init) && find(library, "cuDeviceGet", &d.device_get) &&
               find(library, "cuDevicePrimaryCtxSetFlags_v2", &d.primary_set_flags) &&
               find(library, "cuDevicePrimaryCtxRetain", &d.primary_retain) &&
               find(library, "cuCtxSetCurrent", &d.set_current) && find(library, "cuCtxSynchronize", &d.synchronize) &&
               find(library, "cuStreamCreate", &d.stream_create) &&
               find(library, "cuMemImportFromShareableHandle", &d.import_handle) &&
               find(library, "cuMemAddressReserve", &d.reserve) && find(library, "cuMemMap", &d.map) &&
               find(library, "cuMemSetAccess", &d.set_access) && find(library, "cuMemRelease", &d.release) &&
               find(library, "cuGetErrorName", &d.error_name) && find(library, "cuEventCreate", &d.event_create) &&
               find(library, "cuEventRecord", &d.event_record) && find(library, "cuEventElapsedTime", &d.event_elapsed);
  return d;
}

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

constexpr int kGpusMax = 8;
int gpu_count;
void* contexts[kGpusMax];
// Around the call, on its stream: what the trusted worker's own time is taken with.
void* events[2];

int open_one(const Driver& d, int number, void** stream) {
  CUdevice device = 0;
  CUresult result = d.device_get(&device, number);
  // Spinning answers soonest. Refused when the context is already active: then whoever made it has chosen.
  if (result == 0) d.primary_set_flags(device, kScheduleSpin);
  if (result == 0) result = d.primary_retain(&contexts[number], device);
  if (result == 0) result = d.set_current(contexts[number]);
  if (result == 0) result = d.stream_create(stream, kNonBlocking);
  return result;
}

}  // namespace

int cuda_open(int gpus, void** streams) {
  const Driver& d = driver();
  if (!d.complete) return kNoDriver;
  CUresult result = d.init(0);
  for (int number = 0; number < gpus && result == 0; ++number) result = open_one(d, number, &streams[number]);
  if (result == 0) result = d.set_current(contexts[0]);
  for (void*& event : events)
    if (result == 0) result = d.event_create(&event, 0);
  gpu_count = gpus;
  return result;
}

int cuda_map(int fd, std::uint64_t bytes, void** address) {
  const Driver& d = driver();
  unsigned long long handle = 0;
  CUdeviceptr at = 0;
  CUresult result =
      d.import_handle(&handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)), kPosixDescriptor);
  if (result != 0) return result;
  CUmemAccessDesc access[kGpusMax];
  for (int gpu = 0; gpu < gpu_count; ++gpu) access[gpu] = {{kLocationDevice, gpu}, kReadWrite};
  result = d.reserve(&at, bytes, 0, 0, 0);
  if (result == 0) result = d.map(at, bytes, 0, handle, 0);
  if (result == 0) result = d.set_access(at, bytes, access, static_cast<size_t>(gpu_count));
  d.release(handle);  // the mapping keeps the memory
  *address = reinterpret_cast<void*>(at);
  return result;
}

void cuda_mark(int which, void* stream) { driver().event_record(events[which], stream); }

double cuda_marked_us() {
  float ms = 0;
  return driver().event_elapsed(&ms, events[0], events[1]) == 0 ? static_cast<double>(ms) * 1e3 : 0;
}

int cuda_synchronize() {
  const Driver& d = driver();
  if (!d.complete) return kNoDriver;
  CUresult result = 0;
  for (int gpu = gpu_count - 1; gpu >= 0 && result == 0; --gpu) {
    // Of one GPU whatever context the submission has left current, as it always was.
    if (gpu_count > 1) result = d.set_current(contexts[gpu]);
    if (result == 0) result = d.synchronize();
  }
  return result;
}

const char* cuda_error_name(int result) {
  const char* name = nullptr;
  if (!driver().complete) return "no libcuda.so.1";
  return driver().error_name(result, &name) == 0 && name ? name : "unknown CUDA error";
}

}  // namespace kbench::worker
