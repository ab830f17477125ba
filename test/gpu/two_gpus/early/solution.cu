#include "two_gpus.h"

extern "C" int kbench_run(const kbench_args* args, kbench_stream streams) {
  return two_gpus::run(args, streams, /*early=*/true);
}
