// The CUDA driver as the worker's library needs it, found at run time: builds and runs without CUDA. Inside the folder
// only.
#pragma once

#include <cstdint>

namespace kbench::worker {

// All return 0 or a CUresult; kNoDriver when libcuda.so.1 or a symbol of it is missing.
inline constexpr int kNoDriver = 100;

int cuda_open(void** stream);                               // device 0: primary context, made current; a stream
int cuda_map(int fd, std::uint64_t bytes, void** address);  // an exported allocation; the descriptor stays the caller's
int cuda_synchronize();                                     // all work of this context
void cuda_mark(int which, void* stream);                    // 0 before the call, 1 after it; after cuda_open
double cuda_marked_us();                                    // between the two, on the GPU; after cuda_synchronize
const char* cuda_error_name(int result);

}  // namespace kbench::worker
