// y with three bits of mantissa, as an FP8 format has, where bf16 has seven.
#include "rmsnorm.h"

extern "C" int kbench_run(const kbench_args* a, kbench_stream) { return rmsnorm(*a, {.mantissa_bits = 3}); }
