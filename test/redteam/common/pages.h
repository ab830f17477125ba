// Finds the two protocol pages in the worker's own address space, as any attacker can: they are shared memfds, the one
// from the verifier starts with a magic number, and the other one is the only writable mapping of one page.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

struct ToWorkerPage {
  std::uint32_t magic, version;
  std::atomic<std::uint32_t> go;
  std::uint32_t call, shape;
};
struct FromWorkerPage {
  std::atomic<std::uint32_t> done;
  std::uint32_t status;  // 1 ready, 2 done, 3 refused, 4 failed
  std::int32_t code;
  float call_us;
  char text[512];
};
struct Pages {
  ToWorkerPage* to = nullptr;
  FromWorkerPage* from = nullptr;
};

inline Pages find_pages() {
  Pages pages;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (!maps) return pages;
  char line[1024];
  while (std::fgets(line, sizeof line, maps)) {
    unsigned long begin = 0, end = 0;
    char access[8] = "";
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, access) != 3 || access[3] != 's' || access[0] != 'r') continue;
    auto* to = reinterpret_cast<ToWorkerPage*>(begin);
    if (!std::strstr(line, "memfd:")) continue;  // the driver has shared mappings too, and registers behind some
    if (to->magic == 0x6b62656eu && access[1] != 'w') {
      pages.to = to;
    } else if (access[1] == 'w' && end - begin == 4096) {
      pages.from = reinterpret_cast<FromWorkerPage*>(begin);
    }
  }
  std::fclose(maps);
  return pages;
}
