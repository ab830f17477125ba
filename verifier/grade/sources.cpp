#include "verifier/grade/sources.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "verifier/grade/grade.h"

namespace kbench::grade {
namespace {

constexpr std::array kSuffixes = {".cpp", ".cu", ".h", ".hpp", ".cuh", ".inl", ".py"};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool plain_name(const std::string& name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), sources::plain);
}

bool known_suffix(const std::string& name) {
  return std::any_of(kSuffixes.begin(), kSuffixes.end(), [&](const char* suffix) { return has_suffix(name, suffix); });
}

std::string read_whole(int fd, std::uint64_t bytes_max, const std::string& path) {
  std::string content;
  char chunk[64 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw BadSubmission(path + ": cannot be read");
    if (got == 0) return content;
    content.append(chunk, static_cast<std::size_t>(got));
    if (content.size() > bytes_max) throw BadSubmission(path + ": larger than " + std::to_string(bytes_max) + " bytes");
  }
}

// O_NONBLOCK: opening a FIFO must not wait for its writer.
std::string read_regular(int folder, const std::string& name, const std::string& path, std::uint64_t bytes_max) {
  const Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts{};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0) {
    throw BadSubmission(path + ": " + (errno == ELOOP ? "a symbolic link" : std::strerror(errno)));
  }
  if (!S_ISREG(facts.st_mode)) throw BadSubmission(path + ": not a regular file");
  if (facts.st_nlink != 1) throw BadSubmission(path + ": has more than one name (hard link)");
  return read_whole(file.get(), bytes_max, path);
}

struct Walk {
  const SourceLimits& limits;
  std::vector<Source> found = {};
  std::uint64_t bytes = 0;
  int entries = 0;

  void folder(int fd, const std::string& prefix, int depth) {
    const std::unique_ptr<DIR, int (*)(DIR*)> entries_of(::fdopendir(fd), ::closedir);
    if (!entries_of) {
      ::close(fd);
      throw GradeFault("submission", "cannot list " + prefix);
    }
    while (const dirent* entry = ::readdir(entries_of.get())) {
      const std::string name = entry->d_name;
      if (name[0] == '.' || name == sources::kSkippedFolder) continue;
      if (++entries > limits.files_max * 4)
        throw BadSubmission("more than " + std::to_string(limits.files_max * 4) + " entries");
      one(::dirfd(entries_of.get()), name, prefix + name, depth);
    }
  }

  void one(int parent, const std::string& name, const std::string& path, int depth) {
    struct stat facts{};
    if (::fstatat(parent, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return;  // gone since
    const bool is_folder = S_ISDIR(facts.st_mode);
    if (!is_folder && !known_suffix(name)) return;
    if (name.size() > sources::kNameBytesMax)
      throw BadSubmission("a file name of more than " + std::to_string(sources::kNameBytesMax) + " characters");
    if (!plain_name(name)) throw BadSubmission("a file name with characters other than letters, digits and . _ - +");
    if (is_folder) {
      if (depth >= limits.depth_max)
        throw BadSubmission(path + ": folders nest more than " + std::to_string(limits.depth_max) + " deep");
      Descriptor sub(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (sub.get() < 0) throw BadSubmission(path + ": cannot be read");
      return folder(sub.release(), path + "/", depth + 1);
    }
    if (static_cast<int>(found.size()) >= limits.files_max)
      throw BadSubmission("more than " + std::to_string(limits.files_max) + " files");
    found.push_back({path, read_regular(parent, name, path, limits.file_bytes_max)});
    bytes += found.back().content.size();
    if (bytes > limits.total_bytes_max)
      throw BadSubmission("more than " + std::to_string(limits.total_bytes_max) + " bytes in all");
  }
};

int open_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw GradeFault("submission", "cannot open the folder " + folder + ": " + std::strerror(errno));
  return fd;
}

std::vector<Source> sorted(std::vector<Source> sources) {
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
  return sources;
}

}  // namespace

bool has_suffix(const std::string& path, const char* suffix) {
  const std::size_t length = std::strlen(suffix);
  return path.size() > length && path.compare(path.size() - length, length, suffix) == 0;
}

std::vector<Source> read_sources(const std::string& folder, const SourceLimits& limits) {
  Walk walk{limits};
  walk.folder(open_folder(folder), "", 0);
  return sorted(std::move(walk.found));
}

std::vector<Source> read_artefact(const std::string& folder, const SourceLimits& limits) {
  const Descriptor fd(open_folder(folder));
  struct stat facts{};
  if (::fstatat(fd.get(), "submission.so", &facts, AT_SYMLINK_NOFOLLOW) == 0) {
    return {{"submission.so", read_regular(fd.get(), "submission.so", "submission.so", limits.artefact_bytes_max)}};
  }
  std::vector<Source> sources = read_sources(folder, limits);
  std::erase_if(sources, [](const Source& s) { return !has_suffix(s.path, ".py"); });
  if (sources.empty()) throw BadSubmission("the artefact holds neither submission.so nor *.py");
  return sources;
}

std::string read_file(const std::string& path, std::uint64_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw GradeFault("files", "cannot open " + path + ": " + std::strerror(errno));
  try {
    return read_whole(file.get(), bytes_max, path);
  } catch (const BadSubmission& fault) {
    throw GradeFault("files", fault.what());
  }
}

}  // namespace kbench::grade
