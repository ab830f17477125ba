// Segmented exclusive prefix sum with head flags
// The task is in /task/instruction.md, the arguments in /task/task.h, a correct but slow version in /task/reference.h.
#include "task.h"

// Writes nothing yet: it builds and scores 0. Return 0 when done; any other number ends the grading and is shown to you.
extern "C" int kbench_run(const kbench_args* args, kbench_stream) {
  [[maybe_unused]] const long long N = args->N;
  [[maybe_unused]] const std::int32_t* const x = args->x;
  [[maybe_unused]] const std::uint8_t* const head = args->head;
  [[maybe_unused]] std::int32_t* const out = args->out;
  return 0;
}
