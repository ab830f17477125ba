// Counting kernels with the real CUPTI on a real GPU, whichever way they get there; and what is declared of CUPTI by
// hand against the toolkit's header.
#include <cuda_runtime.h>
#if __has_include(<cupti.h>)
#include <cupti.h>
#endif

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <thread>

#include "verifier/worker/cupti.h"
#include "verifier/worker/kernels.h"

using namespace kbench::worker;

#if __has_include(<cupti.h>)
static_assert(cupti::kKernel == CUPTI_ACTIVITY_KIND_KERNEL);
static_assert(cupti::kConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(cupti::kBufferAlignment == ACTIVITY_RECORD_ALIGNMENT);
static_assert(offsetof(CUpti_Activity, kind) == 0 && sizeof(CUpti_ActivityKind) == sizeof(cupti::Kind));
static_assert(offsetof(CUpti_ActivityKernel4, name) == cupti::kNameOffset);
static_assert(offsetof(CUpti_ActivityKernel9, name) == cupti::kNameOffset);
static_assert(CUPTI_SUCCESS == 0 && sizeof(CUptiResult) == sizeof(cupti::Result));
#endif

namespace {

__global__ void first() {}
__global__ void second() {}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

struct Seen {
  int kernels;
  std::string names;
};
Seen seen() {
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  char names[512];
  const int kernels = seen_kernels(names, sizeof names);
  return {kernels, names};
}

bool names_in_order(const std::string& text) {
  const auto a = text.find("first"), b = text.find("second");
  return a != std::string::npos && b != std::string::npos && a < b;
}

}  // namespace

TEST_CASE("every way to a kernel is counted") {
  const char* const why = watch_kernels();
  INFO((why ? why : ""));
  REQUIRE(why == nullptr);
  cudaStream_t stream = new_stream(), other = new_stream();
  CHECK(seen().kernels == 0);

  first<<<1, 1, 0, stream>>>();
  second<<<1, 1, 0, stream>>>();
  const Seen two = seen();
  CHECK(two.kernels == 2);
  CHECK(names_in_order(two.names));
  CHECK(seen().kernels == 0);

  void *from = nullptr, *to = nullptr;  // copies and memsets are none
  REQUIRE(cudaMalloc(&from, 1 << 20) == cudaSuccess);
  REQUIRE(cudaMalloc(&to, 1 << 20) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(from, 1, 1 << 20, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(to, from, 1 << 20, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
  CHECK(seen().kernels == 0);

  first<<<1, 1, 0, stream>>>();  // another stream, the default one, another thread
  first<<<1, 1, 0, other>>>();
  first<<<1, 1>>>();
  std::thread([] { second<<<1, 1>>>(); }).join();
  CHECK(seen().kernels == 4);

  void* no_arguments = nullptr;  // cooperative, as a persistent kernel may be launched
  REQUIRE(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&first), dim3(1), dim3(1), &no_arguments, 0, stream) ==
          cudaSuccess);
  CHECK(seen().kernels == 1);

  cudaGraph_t graph = nullptr;  // as many as a graph has nodes, each time it is launched
  cudaGraphExec_t ready = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  first<<<1, 1, 0, stream>>>();
  second<<<1, 1, 0, stream>>>();
  first<<<1, 1, 0, stream>>>();
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
  CHECK(seen().kernels == 0);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
    CHECK(seen().kernels == 3);
  }

  for (int i = 0; i < 20'000; ++i) first<<<1, 1, 0, stream>>>();  // more than one buffer holds
  CHECK(seen().kernels == 20'000);
}
