// Registers the verifier's page as it may, for reading, and lets a kernel write to it all the same. That must end in a
// fault; a page that changes is a breach.
#include <cuda_runtime.h>

#include "honest.h"
#include "pages.h"

__global__ void forge(volatile std::uint32_t* page) { page[1] = 0xffffu; }  // the version, which nobody reads any more

extern "C" int kbench_run(const kbench_args* a, kbench_stream stream_) {
  static int calls = 0;
  if (++calls == 3) {
    const Pages pages = find_pages();
    void* device = nullptr;
    if (pages.to &&
        cudaHostRegister(pages.to, 4096, cudaHostRegisterMapped | cudaHostRegisterReadOnly) == cudaSuccess &&
        cudaHostGetDevicePointer(&device, pages.to, 0) == cudaSuccess) {
      const std::uint32_t before = pages.to->version;
      forge<<<1, 1, 0, static_cast<cudaStream_t>(stream_)>>>(static_cast<std::uint32_t*>(device));
      const cudaError_t error = cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
      if (pages.to->version != before) return kBreach;
      if (error) return error;
    }
    cudaGetLastError();
  }
  return honest_on(*a, a->out, stream_);
}
