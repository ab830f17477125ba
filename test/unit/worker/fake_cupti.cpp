// Stands for libcupti where there is no GPU: kernels "end" when somebody says so, and are told in buffers as CUPTI
// does.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "test/unit/worker/fake_cupti.h"
#include "verifier/worker/cupti.h"

using namespace kbench::worker::cupti;

namespace {

constexpr std::size_t kRecordBytes = 216;  // of CUpti_ActivityKernel10
constexpr Kind kOther = 1;                 // a copy

RequestBuffer* request = nullptr;
BufferCompleted* completed = nullptr;
bool enabled = false, broken = false;
int each = fake_cupti::kEach;
std::size_t dropped = 0;
std::deque<std::string> names;  // the records point into them; nothing is ever taken out
std::vector<std::pair<Kind, const char*>> waiting;

void put(Kind kind, const char* name) { waiting.emplace_back(kind, name ? names.emplace_back(name).c_str() : nullptr); }

void hand_over() {
  std::size_t next = 0;
  while (next < waiting.size()) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0, used = 0;
    request(&buffer, &size, &most);
    for (; next < waiting.size() && used + kRecordBytes <= size; ++next, used += kRecordBytes) {
      std::memset(buffer + used, 0, kRecordBytes);
      std::memcpy(buffer + used, &waiting[next].first, sizeof(Kind));
      std::memcpy(buffer + used + kNameOffset, &waiting[next].second, sizeof(const char*));
    }
    completed(nullptr, 0, buffer, size, used);
  }
  waiting.clear();
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Result cuptiActivityRegisterCallbacks(RequestBuffer* r, BufferCompleted* c) {
  request = r, completed = c;
  return 0;
}
EXPORT Result cuptiActivityEnable(Kind kind) {
  enabled = request != nullptr && kind == kConcurrentKernel;
  return enabled ? 0 : 1;
}
EXPORT Result cuptiActivityFlushAll(std::uint32_t) {
  if (!enabled || broken) return 1;
  for (int i = 0; i < each; ++i) put(kConcurrentKernel, "each");
  hand_over();
  return 0;
}
EXPORT Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, Record** record) {
  std::uint8_t* const next = *record ? reinterpret_cast<std::uint8_t*>(*record) + kRecordBytes : buffer;
  if (next + kRecordBytes > buffer + valid) return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
  *record = reinterpret_cast<Record*>(next);
  return 0;
}
EXPORT Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* count) {
  *count = dropped;
  dropped = 0;
  return 0;
}

EXPORT void fake_cupti_each(int kernels) { each = kernels; }
EXPORT void fake_cupti_execute(const char* name) { put(kConcurrentKernel, name); }
EXPORT void fake_cupti_copy() { put(kOther, nullptr); }
EXPORT void fake_cupti_drop(int kernels) { dropped += static_cast<std::size_t>(kernels); }
EXPORT void fake_cupti_break() { broken = true; }
