// Swaps what the next worker runs load and where results go: replaces the artefact by a link, and plants links where
// the verifier writes.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "honest.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first) {
    first = false;
    if (unlink("/artefact/submission.so") == 0 || rename("/artefact", "/artefact2") == 0) return kBreach;
    if (symlink("/tests/reference-cpu.so", "/artefact/other.so") == 0 || chmod("/artefact/submission.so", 04777) == 0)
      return kBreach;
    if (link("/tests/reference-cpu.so", "/tmp/reference.so") == 0) return kBreach;
    const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "/tmp";
    for (const std::string& folder : {home, std::string("/tmp"), std::string("/dev/shm")})
      for (const char* target : {"/kbench/out/reward.json", "/tests", "/artefact", "/proc/1/root", "/"}) {
        const std::string name = folder + "/kbench-" + std::to_string(std::rand());
        if (symlink(target, name.c_str()) != 0) continue;
        if (target[1] == 'k') mkfifo((name + ".json").c_str(), 0666);
      }
  }
  return honest(*a);
}
