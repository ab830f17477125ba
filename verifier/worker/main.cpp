// kbench-worker SUBMISSION.so: the C++ host. Loads the submission and calls its kbench_run whenever the verifier says
// go.
#include <dlfcn.h>
#include <stdio.h>

#include "kbench/abi.h"
#include "verifier/worker/worker.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: kbench-worker SUBMISSION.so, with the verifier's socket as descriptor %d\n",
            KBENCH_WORKER_FD);
    return 2;
  }
  kbench_worker* worker = kbench_worker_open(KBENCH_WORKER_FD);
  if (!worker) {
    fprintf(stderr, "kbench-worker: %s\n", kbench_worker_error());
    return 1;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  using Run = int(const kbench_args*, kbench_stream);
  auto* run = library ? reinterpret_cast<Run*>(dlsym(library, "kbench_run")) : nullptr;
  if (!run) {
    const char* why = dlerror();
    fprintf(stderr, "kbench-worker: %s\n", why);
    kbench_worker_fail(worker, 1, why);
    return 1;
  }
  kbench_worker_ready(worker);
  while (kbench_worker_next(worker) >= 0)
    kbench_worker_finish(
        worker, run(static_cast<const kbench_args*>(kbench_worker_args(worker)), kbench_worker_stream(worker)));
  return 0;
}
