// Of cupti_activity.h, declared here so that no CUDA header is needed. Values, and the layout of a kernel's record up
// to its name, are the same from CUDA 9 to 13; test/gpu compares them with the toolkit's header. Inside the folder
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kbench::worker::cupti {

using Result = int;          // CUptiResult; 0 is success
using Kind = std::uint32_t;  // CUpti_ActivityKind
struct Record {              // CUpti_Activity
  Kind kind;
};

inline constexpr Kind kKernel = 3, kConcurrentKernel = 10;
inline constexpr std::size_t kBufferAlignment = 8;
inline constexpr std::size_t kNameOffset = 104;  // in CUpti_ActivityKernel4 to CUpti_ActivityKernel10

using RequestBuffer = void(std::uint8_t** buffer, std::size_t* size, std::size_t* records_max);
using BufferCompleted = void(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                             std::size_t valid);

// Of a kernel's record; mangled.
inline const char* name_of(const Record* record) {
  const char* name;
  std::memcpy(static_cast<void*>(&name), reinterpret_cast<const char*>(record) + kNameOffset, sizeof name);
  return name;
}

}  // namespace kbench::worker::cupti
