// Tries to make the page that the verifier says go in writable for the GPU: registered without the read-only flag, and
// by way of its file.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "honest.h"
#include "pages.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream) {
  static int calls = 0;
  if (++calls == 3) {
    const Pages pages = find_pages();
    if (pages.to) {
      for (const unsigned flags : {unsigned(cudaHostRegisterMapped), unsigned(cudaHostRegisterPortable), 0u}) {
        if (cudaHostRegister(pages.to, 4096, flags) == cudaSuccess) return kBreach;
        cudaGetLastError();
      }
      char name[64];
      const auto at = reinterpret_cast<unsigned long>(pages.to);
      std::snprintf(name, sizeof name, "/proc/self/map_files/%lx-%lx", at, at + 4096);
      const int fd = open(name, O_RDWR);
      if (fd >= 0 && mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) return kBreach;
    }
  }
  return honest_on(*a, a->out, stream);
}
