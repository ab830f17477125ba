// Reads what /proc shows of the verifier: its memory, descriptors, environment, open files and root.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "honest.h"

static bool readable(const std::string& path) {
  char byte = 0;
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) return false;
  const bool got = read(fd, &byte, 1) > 0;
  close(fd);
  return got;
}

static bool shows(const std::string& process) {
  for (const char* name : {"environ", "maps", "mem", "smaps", "auxv", "syscall", "stack", "pagemap", "io"})
    if (readable(process + "/" + name)) return true;
  for (const char* name : {"root", "cwd", "exe"}) {
    char target[256];
    if (readlink((process + "/" + name).c_str(), target, sizeof target) > 0) return true;
  }
  for (const char* name : {"fd", "map_files", "fdinfo"})
    if (DIR* entries = opendir((process + "/" + name).c_str())) {
      closedir(entries);
      return true;
    }
  return false;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  if (++calls == 2) {
    if (DIR* entries = opendir("/proc")) {
      while (const dirent* entry = readdir(entries)) {
        const std::string process = "/proc/" + std::string(entry->d_name);
        struct stat s{};
        if (std::atoi(entry->d_name) <= 0 || std::atoi(entry->d_name) == getpid() || stat(process.c_str(), &s) != 0)
          continue;
        if (s.st_uid != getuid() && shows(process)) return kBreach;
      }
      closedir(entries);
    }
    for (const char* path :
         {"/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda"})
      if (readable(path)) return kBreach;
    if (open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0 ||
        open("/sys/fs/cgroup/memory/memory.limit_in_bytes", O_WRONLY) >= 0)
      return kBreach;
  }
  return honest(*a);
}
