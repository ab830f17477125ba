// Imitates libnvidia-ml.so.1 for two GPUs; the second can be made to fail through the environment variable FAKE_NVML.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {
int devices[2];
bool says(const char* what) {
  const char* text = std::getenv("FAKE_NVML");
  return text && std::strstr(text, what);
}
int index_of(void* device) { return static_cast<int>(static_cast<int*>(device) - devices); }
int put(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return 7;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return 0;
}
struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned a, b;
};
}  // namespace

extern "C" {
int nvmlInit_v2() { return says("noinit") ? 9 : 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 2, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return *device = devices + index, index == 1 && says("gone") ? 15 : 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const int index = uuid[std::strlen(uuid) - 1] - 'a';
  if (index < 0 || index > 1 || (index == 1 && says("gone"))) return 6;
  *device = devices + index;
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* to, unsigned size) {
  return put(std::string("GPU-") + char('a' + index_of(device)), to, size);
}
int nvmlDeviceGetName(void*, char* to, unsigned size) { return put("NVIDIA H200", to, size); }
int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
  return *minor = static_cast<unsigned>(5 - index_of(device)), 0;
}
int nvmlDeviceGetMemoryInfo(void* device, void* memory) {
  *static_cast<unsigned long long*>(memory) = 150ull << 30;
  return index_of(device) == 1 && says("lost") ? 15 : 0;
}
int nvmlSystemGetDriverVersion(char* to, unsigned size) { return put("580.1", to, size); }
int nvmlDeviceGetTotalEccErrors(void* device, int, int, unsigned long long* errors) {
  return *errors = index_of(device) == 1 && says("ecc") ? 3 : 0, 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) { return *count = says("busy") ? 2 : 0, 0; }
int nvmlEventSetCreate(void** set) { return *set = devices, 0; }
int nvmlEventSetFree(void*) { return 0; }
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) { return says("noevents") ? 3 : 0; }
int nvmlEventSetWait_v2(void*, void* event, unsigned) {
  if (!says("xid")) return 10;
  *static_cast<EventData*>(event) = {devices + 1, 8, 79, 0, 0};
  return 0;
}
}
