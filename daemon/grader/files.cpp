#include "daemon/grader/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace kbench::grader {

namespace {

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

[[noreturn]] void fail(const std::string& path, const std::string& what) { throw FileFault(path + ": " + what); }
[[noreturn]] void fail_errno(const std::string& path) {
  const int error = errno;
  for (const int machine : {ENOSPC, EDQUOT, EIO, EROFS, EMFILE, ENFILE, ENOMEM, EINTR})
    if (error == machine) throw std::system_error(error, std::generic_category(), path);
  fail(path, std::strerror(error));
}

int open_beneath(int folder, const std::string& path, int flags, unsigned mode = 0) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
}

int open_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno(folder);
  return fd;
}

// O_NONBLOCK: a fifo must not hold us up before fstat has shown what it is.
std::optional<std::string> read_regular(int folder, const std::string& path, std::size_t bytes_max) {
  const Descriptor file(open_beneath(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 && errno == ENOENT) return std::nullopt;
  if (file.get() < 0) fail_errno(path);
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) fail_errno(path);
  if (!S_ISREG(facts.st_mode)) fail(path, "no regular file");
  if (facts.st_nlink != 1) fail(path, "has more than one link");
  if (static_cast<std::size_t>(facts.st_size) > bytes_max)
    fail(path, "longer than " + std::to_string(bytes_max) + " bytes");
  std::string content(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + have, content.size() - have);
    if (count < 0) fail_errno(path);
    if (count == 0) fail(path, "changed while it was read");
    have += static_cast<std::size_t>(count);
  }
  return content;
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0) fail_errno(path);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
}

void check_path(const std::string& path) {
  if (path.empty() || path.size() > 400 || path.find('\0') != path.npos) fail("'" + path + "'", "bad path");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > 200) fail("'" + path + "'", "bad path");
    begin = end + 1;
  }
}

// All regular files below, sorted; anything else but folders is a fault.
void list(int root, const std::string& path, int depth, const TakeLimits& limits, std::vector<std::string>& files) {
  if (depth > limits.depth_max) fail(path, "too deep");
  Descriptor folder(open_beneath(root, path, O_RDONLY | O_DIRECTORY));
  if (folder.get() < 0) fail_errno(path);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(folder.get()), ::closedir);
  if (!stream) fail_errno(path);
  const int fd = folder.release();
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string inner = path;
    inner.append("/").append(name);
    struct stat facts{};
    if (::fstatat(fd, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) fail_errno(inner);
    if (S_ISDIR(facts.st_mode)) {
      list(root, inner, depth + 1, limits, files);
    } else if (S_ISREG(facts.st_mode)) {
      if (files.size() == limits.files_max) fail(path, "more than " + std::to_string(limits.files_max) + " files");
      files.push_back(inner);
    } else {
      fail(inner, "no regular file");
    }
  }
}

}  // namespace

bool is_full(const std::system_error& error) {
  return error.code() == std::errc::no_space_on_device || error.code().value() == EDQUOT;
}

std::optional<std::string> read_beneath(const std::string& folder, const std::string& path, std::size_t bytes_max) {
  const Descriptor root(open_folder(folder));
  return read_regular(root.get(), path, bytes_max);
}

void write_beneath(const std::string& folder, const std::string& path, std::string_view content, unsigned mode) {
  check_path(path);
  const Descriptor root(open_folder(folder));
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    const bool made = ::mkdirat(root.get(), parent.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) fail_errno(path);
    if (made && ::fchmodat(root.get(), parent.c_str(), 0755, 0) != 0) fail_errno(path);  // whatever the umask is
  }
  const Descriptor file(open_beneath(root.get(), path, O_WRONLY | O_CREAT | O_EXCL, mode));
  if (file.get() < 0) fail_errno(path);
  if (::fchmod(file.get(), mode) != 0) fail_errno(path);  // another uid must read it
  write_all(file.get(), content, path);
}

Taken take_folder(const std::string& from, const std::string& name, const std::string& to, const TakeLimits& limits) {
  const Descriptor root(open_folder(from));
  std::vector<std::string> files;
  struct stat facts{};
  if (::fstatat(root.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) list(root.get(), name, 0, limits, files);
  std::sort(files.begin(), files.end());
  Taken taken;
  std::string hashes;
  for (const std::string& path : files) {
    const std::optional<std::string> content = read_regular(root.get(), path, limits.bytes_max - taken.bytes);
    if (!content) fail(path, "vanished");
    const std::string inner = path.substr(name.size() + 1);
    write_beneath(to, inner, *content, 0444);
    taken.bytes += content->size();
    ++taken.files;
    hashes += sha256_hex(*content) + " " + std::to_string(inner.size()) + " " + inner + "\n";
  }
  taken.sha256 = sha256_hex(hashes);
  return taken;
}

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr) != 1)
    throw FileFault("no SHA-256");
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
  return text;
}

}  // namespace kbench::grader
