#include "adversary.h"

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream) {
  return adversary::run(args, stream, /*early=*/false, adversary::Queue::late);
}
