#include "verifier/device/cuda_passes.h"

#include <algorithm>

#include "verifier/compare/passes.h"
#include "verifier/device/cuda_check.h"
#include "verifier/inputs/generate.h"

namespace kbench::verify {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kReadsMax = 16;  // other tensors a generator may refer to

struct Reads {
  const void* at[kReadsMax];
};

__device__ std::int64_t first_index() { return blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; }
__device__ std::int64_t stride() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

__global__ void fill_kernel(const __grid_constant__ inputs::Program program, const __grid_constant__ Reads reads,
                            std::uint64_t seed, void* out) {
  for (std::int64_t i = first_index(); i < inputs::generation_units(program); i += stride())
    inputs::generate_unit(program, seed, i, reads.at, out);
}

__global__ void finish_kernel(const __grid_constant__ inputs::Program program, const __grid_constant__ Reads reads,
                              std::uint64_t seed, int phase, void* out, void* scratch) {
  for (std::int64_t i = first_index(); i < inputs::finish_units(program, phase); i += stride())
    inputs::finish_unit(program, seed, phase, i, reads.at, out, scratch);
}

__device__ double warp_sum(double value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// A warp a row: a thread a row would read memory one element a transaction.
__global__ void row_scale_kernel(const __grid_constant__ PassPlan plan, std::int64_t rows) {
  auto* scales = reinterpret_cast<float*>(plan.row_scales.data);
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t row = first_index() / kWarp; row < rows; row += stride() / kWarp) {
    const double sum = warp_sum(compare::sum_of_squares(plan, row * plan.row + lane, (row + 1) * plan.row, kWarp));
    if (lane == 0) scales[row] = static_cast<float>(inputs::root(sum / static_cast<double>(plan.row)));
  }
}

__device__ void atomic_max(double* at,
                           double value) {  // value >= 0: the bits of such doubles are ordered like the doubles
  atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(__double_as_longlong(value)));
}

__device__ void add(std::int64_t* at, std::int64_t value) {
  if (value) atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}

__global__ void pass_kernel(const __grid_constant__ PassPlan plan, std::int64_t units, PassSums* total) {
  PassSums mine;
  for (std::int64_t i = first_index(); i < units; i += stride()) compare::accumulate(plan, i, i + 1, mine);
  mine.sum_error2 = warp_sum(mine.sum_error2);
  mine.sum_expected2 = warp_sum(mine.sum_expected2);
  if (threadIdx.x % kWarp == 0) {
    if (mine.sum_error2 != 0) atomicAdd(&total->sum_error2, mine.sum_error2);
    if (mine.sum_expected2 != 0) atomicAdd(&total->sum_expected2, mine.sum_expected2);
  }
  add(&total->wrong, mine.wrong);
  add(&total->nonfinite, mine.nonfinite);
  add(&total->flips, mine.flips);
  add(&total->rows_wrong, mine.rows_wrong);
  if (mine.max_error > 0) atomic_max(&total->max_error, mine.max_error);
  // -1, none, is the largest number as an unsigned one.
  if (mine.first >= 0)
    atomicMin(reinterpret_cast<unsigned long long*>(&total->first), static_cast<unsigned long long>(mine.first));
}

int blocks_for(std::int64_t work, int units) {
  return static_cast<int>(std::clamp<std::int64_t>((work + kThreads - 1) / kThreads, 1, std::int64_t{units} * 8));
}

}  // namespace

void launch_fill(const Fill& fill, std::uint64_t seed, std::byte* to, std::byte* scratch, int units,
                 cudaStream_t stream) {
  if (fill.reads.size() > kReadsMax) throw DeviceFault("a generator refers to too many tensors");
  if (fill.program.elements == 0) return;
  Reads reads{};
  for (std::size_t i = 0; i < fill.reads.size(); ++i) reads.at[i] = fill.reads[i].data;
  fill_kernel<<<blocks_for(inputs::generation_units(fill.program), units), kThreads, 0, stream>>>(fill.program, reads,
                                                                                                  seed, to);
  check(cudaGetLastError(), "generating inputs");
  for (int phase = 0; phase < inputs::finish_phases(fill.program); ++phase) {
    const int blocks = blocks_for(inputs::finish_units(fill.program, phase), units);
    finish_kernel<<<blocks, kThreads, 0, stream>>>(fill.program, reads, seed, phase, to, scratch);
    check(cudaGetLastError(), "finishing inputs");
  }
}

PassSums run_pass(const PassPlan& plan, int units, PassSums* sums, cudaStream_t stream) {
  PassSums result;
  const std::int64_t count = compare::units(plan);
  if (count == 0) return result;
  if (static_cast<compare::Pass>(plan.pass) == compare::Pass::row_scale) {
    row_scale_kernel<<<blocks_for(count * kWarp, units), kThreads, 0, stream>>>(plan, count);
    check(cudaGetLastError(), "comparing");
    check(cudaStreamSynchronize(stream), "comparing");
    return result;
  }
  check(cudaMemcpyAsync(sums, &result, sizeof result, cudaMemcpyHostToDevice, stream), "comparing");
  pass_kernel<<<blocks_for(count, units), kThreads, 0, stream>>>(plan, count, sums);
  check(cudaGetLastError(), "comparing");
  check(cudaMemcpyAsync(&result, sums, sizeof result, cudaMemcpyDeviceToHost, stream), "comparing");
  check(cudaStreamSynchronize(stream), "comparing");
  return result;
}

}  // namespace kbench::verify
