// In place of common/honest.h on the cuda device. Declarations only: attacks in C++ include it as well, and honest.cu
// is compiled beside every submission.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "task.h"

constexpr int kBreach = 42;

// The same function as on the cpu. Waits until it is done, on a stream of its own, so that attacks which know no stream
// can call it, from any thread. 0 or a cudaError_t.
int honest_scan(const kbench_args& a, std::int32_t* out);
int honest(const kbench_args& a);
// Enqueues only.
int honest_on(const kbench_args& a, std::int32_t* out, kbench_stream stream);
