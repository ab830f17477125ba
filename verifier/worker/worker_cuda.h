// The CUDA driver as the worker's library needs it, found at run time: builds and runs without CUDA. Inside the folder
// only.
#pragma once

#include <cstdint>

namespace kbench::worker {

// All return 0 or a CUresult; kNoDriver when libcuda.so.1 or a symbol of it is missing.
inline constexpr int kNoDriver = 100;

// Of the first so many devices: primary contexts, a stream in each; the first is current afterwards.
int cuda_open(int gpus, void** streams);
// An exported allocation, for all of them to read and write; the descriptor stays the caller's.
int cuda_map(int fd, std::uint64_t bytes, void** address);
int cuda_synchronize();                   // all work of these contexts; the first is current afterwards
void cuda_mark(int which, void* stream);  // of the first; 0 before the call, 1 after it; after cuda_open
double cuda_marked_us();                  // between the two, on the GPU; after cuda_synchronize
const char* cuda_error_name(int result);

}  // namespace kbench::worker
