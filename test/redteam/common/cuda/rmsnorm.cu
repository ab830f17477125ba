// A block a row.
#include "rmsnorm.h"

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

__device__ float shortened(float value, int bits) {
  int exponent = 0;
  const float mantissa = frexpf(value, &exponent);
  const float scale = float(1 << (bits + 1));
  return ldexpf(nearbyintf(mantissa * scale) / scale, exponent);
}

__global__ void rows(const kbench_args a, const Knobs knobs, long long first) {
  __shared__ float sums[kThreads / 32];
  const long long row = (first + blockIdx.x) * a.C;
  float sum = 0;
  for (long long c = threadIdx.x; c < a.C - knobs.skipped_columns; c += blockDim.x) {
    const float t = float(a.x[row + c]) + (knobs.sum_of_x_alone ? 0.0f : float(a.res[row + c]));
    sum += t * t;
  }
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (float one : sums) sum += one;
  const float scale = 1 / sqrtf(sum / float(a.C) + a.eps);
  for (long long c = threadIdx.x; c < a.C; c += blockDim.x) {
    const float t = float(a.x[row + c]) + float(a.res[row + c]);
    a.res_out[row + c] = kb::bf16(t);
    const float y = t * scale * float(a.w[c]);
    a.y[row + c] = kb::bf16(knobs.mantissa_bits == 7 ? y : shortened(y, knobs.mantissa_bits));
  }
}

__global__ void constants(const kbench_args a, float res_out, float y, bool signed_y, bool right_sum) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < a.M * a.C; i += stride) {
    const float t = float(a.x[i]) + float(a.res[i]);
    a.res_out[i] = kb::bf16(right_sum ? t : res_out);
    a.y[i] = kb::bf16(signed_y && t < 0 ? -y : y);
  }
}

cudaStream_t own_stream() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return stream;
}

}  // namespace

int rmsnorm(const kbench_args& a, const Knobs& knobs) {
  rows<<<unsigned(a.M), kThreads, 0, own_stream()>>>(a, knobs, 0);
  if (const cudaError_t error = cudaGetLastError()) return error;
  return cudaStreamSynchronize(own_stream());
}

int rows_on(const kbench_args& a, long long begin, long long end, kbench_stream stream) {
  if (begin < end) rows<<<unsigned(end - begin), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, {}, begin);
  return cudaGetLastError();
}

int constant(const kbench_args& a, float res_out, float y, bool signed_y, bool right_sum) {
  constants<<<132 * 8, kThreads, 0, own_stream()>>>(a, res_out, y, signed_y, right_sum);
  if (const cudaError_t error = cudaGetLastError()) return error;
  return cudaStreamSynchronize(own_stream());
}
