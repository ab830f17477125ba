// Tries to shrink, grow, punch, unseal or rewrite the shared pages and the inputs' buffers, and to forge the go word.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "honest.h"
#include "pages.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif

// Every memfd this process can name: by descriptor and by mapping.
static bool tampered(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR);
  if (fd < 0) return false;
  struct stat s{};
  bool breach = false;
  if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 0) {
    breach = ftruncate(fd, 0) == 0 || ftruncate(fd, s.st_size + 4096) == 0;
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, s.st_size);  // zeroes what the worker may write anyway
    breach = breach || fcntl(fd, F_ADD_SEALS, 0) == 0;
  }
  close(fd);
  return breach;
}

static bool tampered_all(const char* folder) {
  DIR* entries = opendir(folder);
  if (!entries) return false;
  bool breach = false;
  while (const dirent* entry = readdir(entries))
    if (entry->d_name[0] != '.') breach = tampered(std::string(folder) + "/" + entry->d_name) || breach;
  closedir(entries);
  return breach;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static int calls = 0;
  if (++calls == 3) {
    if (tampered_all("/proc/self/fd") || tampered_all("/proc/self/map_files")) return kBreach;
    const Pages pages = find_pages();
    if (pages.to && mprotect(pages.to, 4096, PROT_READ | PROT_WRITE) == 0) return kBreach;
  }
  return honest(*a);
}
