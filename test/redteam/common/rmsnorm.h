// A right and plain kernel for norm-rope-fusion/fused-residual-add-rmsnorm, with the knobs by which the tolerance
// surfers turn it wrong.
#pragma once

#include <cmath>

#include "task.h"

struct Knobs {
  long long skipped_columns = 0;  // at the end of the sum of squares
  bool sum_of_x_alone = false;
  int mantissa_bits = 7;  // of y; bf16 has 7
};

inline float shortened(float value, int bits) {
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  const float scale = float(1 << (bits + 1));
  return std::ldexp(std::nearbyint(mantissa * scale) / scale, exponent);
}

inline int rmsnorm(const kbench_args& a, const Knobs& knobs) {
  const long long C = a.C;
  for (long long m = 0; m < a.M; ++m) {
    float sum = 0;
    for (long long c = 0; c < C - knobs.skipped_columns; ++c) {
      const float t = float(a.x[m * C + c]) + (knobs.sum_of_x_alone ? 0.0f : float(a.res[m * C + c]));
      sum += t * t;
    }
    const float scale = 1 / std::sqrt(sum / float(C) + a.eps);
    for (long long c = 0; c < C; ++c) {
      const float t = float(a.x[m * C + c]) + float(a.res[m * C + c]);
      a.res_out[m * C + c] = kb::bf16(t);
      const float y = t * scale * float(a.w[c]);
      a.y[m * C + c] = kb::bf16(knobs.mantissa_bits == 7 ? y : shortened(y, knobs.mantissa_bits));
    }
  }
  return 0;
}
