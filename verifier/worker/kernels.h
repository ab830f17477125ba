// Which kernels the device executes for this process, as NVIDIA's tracing library CUPTI tells: for the observed run.
// CUPTI is found at run time. Inside the folder only.
#pragma once

#include <cstddef>

namespace kbench::worker {

// To be called before anything of CUDA is. Null, or why kernels cannot be counted here.
const char* watch_kernels();

// How many kernels have ended since the last asking, and their names ("first x3, second"), cut to the size. Synchronise
// before. -1 when CUPTI no longer tells.
int seen_kernels(char* names, std::size_t size);

}  // namespace kbench::worker
