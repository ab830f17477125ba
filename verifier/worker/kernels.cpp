#include "verifier/worker/kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cstdint>

#include "verifier/worker/cupti.h"

namespace kbench::worker {
namespace {

using namespace cupti;

// By the loader's own search, then where the CUDA toolkit has it.
constexpr const char* kLibraries[] = {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
                                      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "libcupti.so"};
constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr int kNamesMax = 8;  // told apart; further ones are only counted
constexpr std::size_t kNameBytes = 96;

struct Library {
  Result (*register_callbacks)(RequestBuffer*, BufferCompleted*);
  Result (*enable)(Kind);
  Result (*flush_all)(std::uint32_t flags);
  Result (*next_record)(std::uint8_t* buffer, std::size_t valid, Record** record);
  Result (*dropped)(void* context, std::uint32_t stream, std::size_t* count);
};
Library library;

// Written by whichever thread CUPTI hands a buffer back on.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
struct {
  char name[kNameBytes];
  int count;
} seen[kNamesMax];
int names_seen, kernels;

void count(const char* name) {
  ++kernels;
  if (!name) name = "?";
  int i = 0;
  while (i < names_seen && strncmp(seen[i].name, name, kNameBytes - 1) != 0) ++i;
  if (i == kNamesMax) return;
  if (i == names_seen) {
    ++names_seen;
    strncpy(seen[i].name, name, kNameBytes - 1);
  }
  ++seen[i].count;
}

void request_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records_max) {
  *buffer = static_cast<std::uint8_t*>(aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;  // without one CUPTI drops records and counts them
  *records_max = 0;
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  pthread_mutex_lock(&mutex);
  Record* record = nullptr;
  while (valid > 0 && library.next_record(buffer, valid, &record) == 0)
    if (record->kind == kKernel || record->kind == kConcurrentKernel) count(name_of(record));
  std::size_t lost = 0;
  if (library.dropped(nullptr, 0, &lost) == 0) kernels += static_cast<int>(lost);
  pthread_mutex_unlock(&mutex);
  free(buffer);
}

template <class Function>
bool find(void* from, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(from, name));
  return *function != nullptr;
}

}  // namespace

const char* watch_kernels() {
  void* found = nullptr;
  for (const char* name : kLibraries)
    if (!found) found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!found) return "there is no libcupti";
  if (!find(found, "cuptiActivityRegisterCallbacks", &library.register_callbacks) ||
      !find(found, "cuptiActivityEnable", &library.enable) ||
      !find(found, "cuptiActivityFlushAll", &library.flush_all) ||
      !find(found, "cuptiActivityGetNextRecord", &library.next_record) ||
      !find(found, "cuptiActivityGetNumDroppedRecords", &library.dropped))
    return "libcupti lacks a function";
  if (library.register_callbacks(request_buffer, buffer_completed) != 0) return "CUPTI takes no callbacks";
  // Not the kind that serialises kernels. Kernels of graphs are told one by one, since graphs as a whole are not asked
  // for.
  if (library.enable(kConcurrentKernel) != 0) return "CUPTI does not trace kernels here";
  return nullptr;
}

int seen_kernels(char* names, std::size_t size) {
  // Not forced: what is still running is told, once, when it has ended.
  const bool told = library.flush_all(0) == 0;
  pthread_mutex_lock(&mutex);
  const int number = told ? kernels : -1;
  std::size_t length = 0;
  names[0] = 0;
  for (int i = 0; i < names_seen && length + 1 < size; ++i) {
    const char* const before = i == 0 ? "" : ", ";
    const int wrote = seen[i].count == 1
                          ? snprintf(names + length, size - length, "%s%s", before, seen[i].name)
                          : snprintf(names + length, size - length, "%s%s x%d", before, seen[i].name, seen[i].count);
    length += static_cast<std::size_t>(wrote);
  }
  memset(seen, 0, sizeof seen);
  names_seen = kernels = 0;
  pthread_mutex_unlock(&mutex);
  return number;
}

}  // namespace kbench::worker
