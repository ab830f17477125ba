#pragma once

#include "kbench/abi.h"
#include "kbench/types.h"

struct kbench_args {
  long long N;
  long long H;
  alignas(8) float s;
  const float* x;
  float* acc;
  float* y;
};
