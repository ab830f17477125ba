// Poisons the JIT cache where the next process would look for it, and asks for another one by the environment; a cache
// that an earlier run filled is a breach.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "honest.h"

static bool left_before(const std::string& home) {
  std::string path = home;
  for (const char* part : {"/.nv", "/ComputeCache", "/0", "/0"}) {
    path += part;
    mkdir(path.c_str(), 0777);
  }
  if (access((path + "/kb-mark").c_str(), F_OK) == 0) return true;
  for (const std::string& name : {path + "/kb-mark", home + "/.nv/ComputeCache/index", path + "/0123456789abcdef"}) {
    const int fd = open(name.c_str(), O_CREAT | O_WRONLY, 0666);
    if (fd >= 0) {
      const std::string garbage(4096, '\xff');
      if (write(fd, garbage.data(), garbage.size()) < 0) return false;
      close(fd);
    }
  }
  return false;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static bool first = true;
  if (first) {
    first = false;
    for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm", "/root", "/"})
      if (left_before(folder)) return kBreach;
    if (const char* home = std::getenv("HOME"); home && left_before(home)) return kBreach;
    setenv("CUDA_CACHE_PATH", "/tmp", 1);
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
  }
  return honest_on(*a, a->out, stream);
}
