// Not a submission but a whole worker: tries on the descriptors it is given all that could hurt who has them mapped
// too. Says how many attempts succeeded as its code: expected is 0.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verifier/protocol/futex.h"
#include "verifier/protocol/packet.h"

using namespace kbench::protocol;

int main() {
  static Setup setup;
  int fds[kFdsMax], count = 0;
  if (receive_setup(3, &setup, fds, &count) != 0) return 1;
  auto* from = static_cast<FromWorker*>(mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0));
  int won = 0;
  for (int i = 0; i < count; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[i]);
    const int again = open(path, O_RDWR);
    for (const int fd : {fds[i], again}) {
      if (fd < 0) continue;
      const bool shrunk = ftruncate(fd, 0) == 0, grown = ftruncate(fd, 1 << 30) == 0;
      const bool sealed = fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
      won += shrunk + grown + sealed;
      if (i != 0) continue;
      const bool written = pwrite(fd, "\xff\xff\xff\xff", 4, 8) > 0;
      void* mapped = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      void* read_only = mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, fd, 0);
      const bool upgraded = mprotect(read_only, kPageBytes, PROT_READ | PROT_WRITE) == 0;
      won += written + (mapped != MAP_FAILED) + upgraded;
    }
    if (again >= 0) fallocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPageBytes);  // zeroes at most
  }
  for (int i = 0; i < count; ++i) close(fds[i]);
  snprintf(from->text, sizeof from->text, "%d attempts succeeded\x1b[31m", won);
  from->code = won;
  from->status = static_cast<std::uint32_t>(Status::ready);
  futex_wake(&from->done);
  for (;;) pause();
}
