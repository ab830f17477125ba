#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "daemon/api/api.h"

namespace kbench::api {
namespace {

constexpr std::size_t kTokenBytes = 32;  // of randomness
constexpr std::size_t kTokenCharsMin = 16, kTokenCharsMax = 512;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw std::runtime_error("token file " + path + ": " + what);
}

std::string fresh_token(const std::string& path) {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail(path, "no randomness to be had");
  std::string token = "kb_";
  for (const auto byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

// Written beside and linked into place: whoever sees the file sees a whole token, and two daemons that start at once
// agree on one.
void make(const std::string& path) {
  const std::string beside = path + "." + std::to_string(::getpid());
  ::unlink(beside.c_str());
  const Descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  const std::string text = fresh_token(path) + "\n";
  if (file.fd < 0 || ::write(file.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.fd) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    fail(path, std::string("cannot be made: ") + std::strerror(error));
  }
  const int linked = ::link(beside.c_str(), path.c_str());
  const int error = errno;
  ::unlink(beside.c_str());
  if (linked != 0 && error != EEXIST) fail(path, std::string("cannot be made: ") + std::strerror(error));
}

}  // namespace

std::string token_in(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (file.fd < 0 && errno == ENOENT) {
    make(path);
    file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }
  struct stat facts{};
  if (file.fd < 0 && errno == ELOOP) fail(path, "is a symbolic link; set server.token_file to the file itself");
  if (file.fd < 0 || ::fstat(file.fd, &facts) != 0) fail(path, std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) fail(path, "is not a regular file");
  // Whoever owns it may change it, and read what is written there.
  const auto self = ::geteuid();
  if (facts.st_uid != self) {
    fail(path, "belongs to the user " + std::to_string(facts.st_uid) + ", not to " + std::to_string(self) +
                   " as which this runs; fix it with chown " + std::to_string(self) + " " + path);
  }
  if ((facts.st_mode & 077) != 0) fail(path, "others may read or write it; fix it with chmod 600 " + path);
  std::string token(kTokenCharsMax + 2, '\0');
  const auto got = ::read(file.fd, token.data(), token.size());
  token.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  bool plain = token.size() >= kTokenCharsMin && token.size() <= kTokenCharsMax;
  for (const char c : token) plain = plain && c > ' ' && c < 0x7f;
  if (!plain)
    fail(path, "must hold one line of 16 to 512 visible characters; remove it and the daemon makes a new one");
  return token;
}

}  // namespace kbench::api
