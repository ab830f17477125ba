// The binary contract between a task, its reference and a submission. Plain C, so that any language can meet it.
//
// A task's arguments are one struct, `kbench_args`, generated into the task's `task.h`. Every field takes one 8-byte
// slot, in this order: dims (long long), then scalars (float, double or long long, each alignas(8)), then tensors
// (pointers): inputs and in-out tensors in the order of the definition, then the pure outputs. Tensors are row-major,
// contiguous, last index fastest, 256-byte aligned. In a task on several GPUs each tensor is there once a GPU, and its
// field is an array of pointers: as many slots, one behind the other.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct kbench_args;  // generated: task.h

// cuda: a cudaStream_t, the stream to launch on (work on other streams must be joined to it, or finished, before
// return). cpu: null. In a task on several GPUs: where an array of as many of these is, one a GPU; all GPUs may read
// and write all tensors.
typedef void* kbench_stream;

// What a submission exports. 0 means done (cuda: everything enqueued on `stream`; the worker synchronises). Anything
// else ends the grading as a runtime error and the number is shown to the submitter. int kbench_run(const struct
// kbench_args* args, kbench_stream stream);

// What a reference may use. Filled by the verifier; never seen by a submission.
struct kbench_exec {
  void* context;
  // Runs body(arg, begin, end) over [0, n) cut into ranges, on all cores; returns when all are done. CPU only.
  void (*run)(void* context, long long n, void (*body)(void* arg, long long begin, long long end), void* arg);
  // Memory of the device, uninitialised, 256-byte aligned, freed by the verifier after the call. Null means out of
  // memory.
  void* (*scratch)(void* context, unsigned long long bytes);
  kbench_stream stream;  // CUDA only
};

// What a reference library exports (made from a task's reference header by the SDK): 0 means done.
// int kbench_reference(const struct kbench_args* args, struct kbench_exec* exec);     and likewise
// int kbench_independent(…), int kbench_control(…)  in the author's builds.

#ifdef __cplusplus
}
#endif
