// In place of common/rmsnorm.h on the cuda device; the same knobs. rmsnorm.cu is compiled beside every submission of
// that task.
#pragma once

#include "task.h"

struct Knobs {
  long long skipped_columns = 0;  // at the end of the sum of squares
  bool sum_of_x_alone = false;
  int mantissa_bits = 7;  // of y; bf16 has 7
};

// Waits until it is done, on a stream of its own. 0 or a cudaError_t.
int rmsnorm(const kbench_args& a, const Knobs& knobs);
// The rows from begin to end, right, by one kernel; none where there are no rows. Enqueues only.
int rows_on(const kbench_args& a, long long begin, long long end, kbench_stream stream);
// Both outputs the same everywhere but for the sign, which is t's in y if `signed_y`.
int constant(const kbench_args& a, float res_out, float y, bool signed_y, bool right_sum);
