// The calibrating worker: a submission of our own, loaded by kbench-worker like any other, whose calls cost what a call
// costs.
//
// Its arguments, slot by slot: variant, gpus, count, bytes[count], gpu[count], then as many pointers, one an output
// tensor of one GPU.
//   empty    one launch a GPU that does nothing (cpu: nothing)
//   writing  writes every byte of every output once (cuda: one kernel an output, so that the write-back of dirty lines
//   is calibrated)
// libkbench_trusted.so for the cpu device, libkbench_trusted_cuda.so for cuda; both export kbench_run.
#pragma once

namespace kbench::trusted {

inline constexpr long long kEmpty = 0, kWriting = 1;

struct Arguments {  // of one output; more follow in the same layout
  long long variant, gpus, count;
  long long first[1];
  const long long* bytes() const { return first; }
  const long long* gpu() const { return first + count; }
  void* const* pointers() const { return reinterpret_cast<void* const*>(first + 2 * count); }
};

}  // namespace kbench::trusted
