// Verifier <-> worker: two shared pages and one socket.
//
// The verifier makes both pages as memfds sealed SHRINK|GROW|SEAL, the one to the worker FUTURE_WRITE too after mapping
// it itself. The worker's page is hostile: it is copied once, and every value is range-checked before it is used. The
// socket (SOCK_SEQPACKET) carries the set-up message with the buffers' descriptors, verifier to worker; nothing is read
// from it.
#pragma once

#include <atomic>
#include <cstdint>

namespace kbench::protocol {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kMagic = 0x6b62656e;
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr int kSlotsMax = 96;  // 8-byte slots of kbench_args
inline constexpr int kTensorsMax = 64;
inline constexpr std::uint32_t kGpusMax = 8;
inline constexpr int kShapesMax = 8;
inline constexpr std::uint32_t kStop = 0xffffffffu;  // go word: leave

enum class Call : std::uint32_t { prepare = 1, run = 2 };  // prepare differs in nothing but its deadline

// Verifier -> worker. `go` alone changes while the worker runs; all else is written before it.
struct ToWorker {
  std::uint32_t magic, version;
  std::atomic<std::uint32_t> go;  // epoch: counts up by one a call
  Call call;
  std::uint32_t shape;  // index into the set-up's shapes
};

enum class Status : std::uint32_t { starting = 0, ready = 1, done = 2, refused = 3, failed = 4 };

// Worker -> verifier.
struct FromWorker {
  std::atomic<std::uint32_t> done;  // the epoch just finished; 0 with status ready after set-up
  std::uint32_t status;             // Status
  std::int32_t code;                // kbench_run's return value, or errno/cudaError of the failure
                                    // done, where kernels are counted: how many the call executed
  float call_us;                    // the worker's own measure; evidence only
  char text[512];                   // why it failed, or the kernels' names; printed escaped, never parsed
};

// The set-up message, one packet, with the descriptors as SCM_RIGHTS in the order: to_worker page, from_worker page,
// tensors' buffers.
struct SetupTensor {
  std::uint64_t mapped_bytes, tensor_offset;
};
struct SetupShape {
  std::uint64_t slots[kSlotsMax];  // kbench_args as the submission gets it, but pointers hold the tensor's index
  std::uint32_t slot_count, first_pointer;  // slots from first_pointer on are pointers
};
struct Setup {
  std::uint32_t magic, version;
  std::uint32_t device;  // 0 cpu, 1 cuda
  std::uint32_t tensor_count, shape_count;
  std::uint32_t observed;            // 1: the worker counts the kernels of each call, see FromWorker::code
  std::uint32_t gpus;                // cuda: opened, and all of them map every tensor; cpu: so many null streams
  SetupTensor tensors[kTensorsMax];  // one buffer a tensor, large enough for every shape
  SetupShape shapes[kShapesMax];
};

}  // namespace kbench::protocol
