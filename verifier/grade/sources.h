// Inside grade/: files that strangers wrote, read once and as they are: no link is followed, nothing is opened twice.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kbench/sources.h"

namespace kbench::grade {

struct SourceLimits {
  int files_max = sources::kFilesMax;
  int depth_max = sources::kFoldersDeepMax;
  std::uint64_t file_bytes_max = sources::kFileBytesMax;
  std::uint64_t total_bytes_max = sources::kAllBytesMax;
  std::uint64_t artefact_bytes_max = 512ULL << 20;
};

struct Source {
  std::string path, content;
};  // path: relative, "include/tile.h"

// The submitter's fault: says which file and what is wrong with it.
struct BadSubmission : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All files with a suffix that a language knows (.cpp .cu .h .hpp .cuh .inl .py), by name. Other files and names that
// begin with a dot are left alone. Throws BadSubmission for links, strange names and anything over a limit; GradeFault
// when the folder cannot be read.
std::vector<Source> read_sources(const std::string& folder, const SourceLimits& limits);

// What a worker loads: submission.so, or the *.py.
std::vector<Source> read_artefact(const std::string& folder, const SourceLimits& limits);

// A trusted file. Throws GradeFault.
std::string read_file(const std::string& path, std::uint64_t bytes_max = 64ULL << 20);

bool has_suffix(const std::string& path, const char* suffix);

}  // namespace kbench::grade
