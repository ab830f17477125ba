// Files that containers left behind, taken without trusting them: beneath a folder,
// through no link, regular, bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kbench::grader {

// Names the path and what is wrong with it. What is wrong with the machine (a full disk, no descriptors) is a
// std::system_error: nobody's files are at fault.
struct FileFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
bool is_full(const std::system_error& error);  // a disk is, or a quota

// The content of a regular file with one link, at most `bytes_max` long; nullopt when there is nothing by that name.
// FileFault otherwise.
std::optional<std::string> read_beneath(const std::string& folder, const std::string& path, std::size_t bytes_max);

// Writes a new file and the folders it needs (0755). FileFault for a path that leaves the folder, exists already, or is
// odd.
void write_beneath(const std::string& folder, const std::string& path, std::string_view content, unsigned mode = 0644);

struct TakeLimits {
  std::size_t files_max = 256, bytes_max = 512u << 20;
  int depth_max = 4;
};
struct Taken {
  std::string sha256;  // over the sorted paths, lengths and contents
  std::size_t files = 0, bytes = 0;
};
// Copies what lies in from/name into the existing, empty folder `to` (files 0444, folders 0755). FileFault for anything
// but regular files with one link and folders, and for more than the limits. Nothing there: no files.
Taken take_folder(const std::string& from, const std::string& name, const std::string& to, const TakeLimits& limits);

std::string sha256_hex(std::string_view bytes);

}  // namespace kbench::grader
