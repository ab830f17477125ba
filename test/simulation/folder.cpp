// The file system of the work folder fails, by the C library's functions that the grader calls; and SQLite's files,
// which lie on no file system, show their size. The C++ library comes by here, too.
#include "test/simulation/folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <string>

#include "test/simulation/census.h"
#include "test/simulation/disk.h"
#include "test/simulation/fibers.h"
#include "test/simulation/host.h"
#include "test/simulation/turns.h"

using namespace kbench::sim;

namespace {

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool may_fail() {
  const Host* host = Host::current;
  return in_fiber() && host && !host->container_writes;
}

bool is_inside(const std::string& path) { return path.starts_with(Host::current->work_folder + "/"); }

bool is_inside(int folder, const char* path) {
  if (path[0] == '/') return is_inside(path);
  char target[512];
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(folder)).c_str(), target, sizeof target);
  return size > 0 && is_inside(std::string(target, static_cast<std::size_t>(size)) + "/");
}

bool strikes_folder(const char* where, const char* what) { return strikes(where, what, Host::current->faults.folder); }

// Sets errno.
bool fails_to_make(const char* where) {
  errno = 0;
  if (strikes_folder(where, "full"))
    errno = ENOSPC;
  else if (strikes_folder(where, "io"))
    errno = EIO;
  return errno != 0;
}

}  // namespace

namespace kbench::sim {

bool fails_to_open(int folder, const char* path, const open_how& how) {
  return (how.flags & O_CREAT) && may_fail() && is_inside(folder, path) && fails_to_make("openat");
}

}  // namespace kbench::sim

extern "C" {

int mkdir(const char* path, mode_t mode) noexcept {
  if (may_fail() && is_inside(path) && fails_to_make("mkdir")) return -1;
  static const auto call = real<int(const char*, mode_t)>("mkdir");
  return call(path, mode);
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  if (may_fail() && is_inside(folder, path) && fails_to_make("mkdirat")) return -1;
  static const auto call = real<int(int, const char*, mode_t)>("mkdirat");
  return call(folder, path, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (may_fail() && is_inside(fd, "")) {
    if (fails_to_make("write")) return -1;
    if (size > 1 && strikes_folder("write", "short")) size = 1 + chance().below(size - 1);
  }
  static const auto call = real<ssize_t(int, const void*, size_t)>("write");
  return call(fd, bytes, size);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  if (may_fail() && is_inside(folder, path) && strikes_folder("unlinkat", "io")) {
    errno = EIO;
    return -1;
  }
  static const auto call = real<int(int, const char*, int)>("unlinkat");
  return call(folder, path, flags);
}

int statvfs(const char* path, struct statvfs* facts) noexcept {
  static const auto call = real<int(const char*, struct statvfs*)>("statvfs");
  const int result = call(path, facts);
  if (may_fail() && strikes_folder("statvfs", "full")) facts->f_bavail = 0;
  return result;
}

// The C++ library's; ours is called stat64.
int plain_stat(const char* path, struct stat* facts) noexcept __asm__("stat");
int plain_stat(const char* path, struct stat* facts) noexcept {
  if (in_fiber() && Disk::current)
    if (const std::int64_t size = Disk::current->size(path); size >= 0) {
      *facts = {};
      facts->st_mode = S_IFREG | 0600;
      facts->st_size = size;
      return 0;
    }
  static const auto call = real<int(const char*, struct stat*)>("stat");
  return call(path, facts);
}

}  // extern "C"
