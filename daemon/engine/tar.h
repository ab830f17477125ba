// A build context as bytes: the same files give the same archive, whatever the file system says of owners and times.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kbench::engine {

struct TarEntry {
  std::string path;  // relative, '/' between folders; folders are implied
  std::string content;
  bool executable = false;
};

struct TarLimits {
  std::size_t files_max = 4096;
  std::size_t bytes_max = 256u << 20;  // of all contents
};

struct BadTar : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // names the path and what is wrong with it

// ustar, sorted by path, uid = gid = 0, mtime 0, mode 0644 or 0755. Throws BadTar: limits, a path given twice,
// absolute, empty, with
// '.' or '..' or a NUL in it, or too long for the format.
std::string write_tar(std::vector<TarEntry> entries, const TarLimits& limits = {});

// Regular files beneath a folder, for write_tar. Symbolic links and special files throw BadTar: a context holds none.
std::vector<TarEntry> read_folder(const std::string& folder, const TarLimits& limits = {});

}  // namespace kbench::engine
