// What the files of a submission may be. The daemon refuses what is beyond before it is queued, the verifier whatever
// reaches it all the same: both by these numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kbench::sources {

inline constexpr int kFilesMax = 256;
inline constexpr int kFoldersDeepMax = 4;          // one within the other, above a file
inline constexpr std::size_t kNameBytesMax = 100;  // of a file or folder, without what is above it
inline constexpr std::uint64_t kFileBytesMax = 4ULL << 20;
inline constexpr std::uint64_t kAllBytesMax = 32ULL << 20;
inline constexpr std::string_view kSkippedFolder = "__pycache__";  // whatever lies in it is left alone

constexpr bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-' || c == '+';
}

}  // namespace kbench::sources
