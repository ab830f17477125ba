// For one b and c, a block some h: of each d they are one stretch of x, and each h is one stretch of the result. Both
// are moved in aligned chunks of 16 bytes, whatever the extents are: what is read beyond a stretch's ends is dropped,
// and a stretch of the result lies in shared memory as far from a multiple of 16 bytes as it does in the end.
#include <cuda_runtime.h>

#include <cstdint>

#include "task.h"

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kChunk = 8;  // words of 16 bytes
constexpr int kSharedMax = 40 << 10;

struct Plan {
  int rows;   // h of a block
  int per_c;  // blocks for all h
  int pitch;  // words of an h in shared memory
};

// The 16-bit word `i` of a chunk.
__device__ __forceinline__ std::uint16_t word(const uint4& chunk, int i) {
  const std::uint32_t pair = i < 2 ? chunk.x : i < 4 ? chunk.y : i < 6 ? chunk.z : chunk.w;
  return std::uint16_t(i % 2 ? pair >> 16 : pair);
}

__global__ void __launch_bounds__(kThreads) stretches(const kbench_args a, const Plan plan) {
  extern __shared__ uint4 chunks[];
  std::uint16_t* turned = reinterpret_cast<std::uint16_t*>(chunks);  // [h, w, d]
  const int D = int(a.D), W = int(a.Wd), H = int(a.H), C = int(a.C);
  const long long block = blockIdx.x;
  const int c = int(block % C), part = int(block / C % plan.per_c), h0 = part * plan.rows;
  const long long b = block / C / plan.per_c;
  const int rows = H - h0 < plan.rows ? H - h0 : plan.rows, length = rows * W, size = W * D;
  const long long total = a.B * C * D * H * static_cast<long long>(W);
  const auto to_of = [&](int row) { return ((b * H + h0 + row) * C + c) * size; };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int deep = (D + 7) / 8, wide = (length + 2 * kChunk - 2) / kChunk;  // chunks that a stretch may touch
  struct Piece {
    uint4 chunk;
    int d, at;  // of the chunk's first word in the stretch: negative where it begins before it
  };
  const auto fetch = [&](int unit) {
    Piece piece{make_uint4(0, 0, 0, 0), unit % deep * 8 + lane / 4, length};
    if (piece.d >= D) return piece;
    const long long begin = ((b * C + c) * D + piece.d) * H * W + static_cast<long long>(h0) * W;
    const long long from = begin / kChunk * kChunk + (unit / deep * 4 + lane % 4) * kChunk;
    if (from - begin >= length) return piece;
    piece.at = int(from - begin);
    if (from + kChunk <= total) {
      piece.chunk = __ldg(reinterpret_cast<const uint4*>(a.x + from));
    } else {  // the tensor's end
      std::uint32_t pairs[4] = {};
      for (int i = 0; i < kChunk && from + i < total; ++i) pairs[i / 2] |= std::uint32_t(a.x[from + i]) << i % 2 * 16;
      piece.chunk = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
    return piece;
  };
  const auto lay_down = [&](const Piece& piece) {
    const int at = piece.at;
    if (at >= length) return;
    int row = at < 0 ? 0 : at / W, w = at - row * W;
    int place = row * plan.pitch + int(to_of(row) % kChunk) + w * D + piece.d;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      if (w == W) {
        ++row, w = 0;
        if (row < rows) place = row * plan.pitch + int(to_of(row) % kChunk) + piece.d;
      }
      if (at + i >= 0 && at + i < length) turned[place] = word(piece.chunk, i);
      ++w, place += D;
    }
  };
  // A warp takes 8 d, 4 chunks of each: its writes to shared memory meet few bank conflicts. Three loads under way at
  // once.
  const int units = deep * ((wide + 3) / 4);
  for (int unit = warp; unit < units; unit += 3 * kWarps) {
    const Piece first = fetch(unit), second = fetch(unit + kWarps), third = fetch(unit + 2 * kWarps);
    lay_down(first);
    lay_down(second);
    lay_down(third);
  }
  __syncthreads();

  for (int row = 0; row < rows; ++row) {
    const long long to = to_of(row);
    const int shift = int(to % kChunk);  // the first chunk begins so many words before the stretch
    std::uint16_t* out = a.out + (to - shift);
    const std::uint16_t* from = turned + row * plan.pitch;
    for (int n = threadIdx.x; n * kChunk < shift + size; n += kThreads) {
      const int first = n * kChunk;
      if (first >= shift && first + kChunk <= shift + size) {
        *reinterpret_cast<uint4*>(out + first) = *reinterpret_cast<const uint4*>(from + first);
      } else {
        for (int i = first; i < first + kChunk; ++i)
          if (i >= shift && i < shift + size) out[i] = from[i];
      }
    }
  }
}

// Any extents.
__global__ void __launch_bounds__(kThreads) words(const kbench_args a) {
  const long long i = blockIdx.x * static_cast<long long>(kThreads) + threadIdx.x;
  if (i >= a.B * a.H * a.C * a.Wd * a.D) return;
  const long long d = i % a.D, w = i / a.D % a.Wd, c = i / (a.D * a.Wd) % a.C, h = i / (a.D * a.Wd * a.C) % a.H;
  const long long b = i / (a.D * a.Wd * a.C * a.H);
  a.out[i] = a.x[(((b * a.C + c) * a.D + d) * a.H + h) * a.Wd + w];
}

}  // namespace

extern "C" int kbench_run(const kbench_args* args, kbench_stream stream_) {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const kbench_args& a = *args;
  const long long pitch = (a.Wd * a.D + 2 * kChunk - 2) / kChunk * kChunk, fit = kSharedMax / (pitch * 2);
  if (fit >= 1) {
    const long long most = fit < 8 ? fit : 8, per_c = (a.H + most - 1) / most, rows = (a.H + per_c - 1) / per_c;
    const Plan plan{int(rows), int((a.H + rows - 1) / rows), int(pitch)};
    stretches<<<unsigned(a.B * a.C * plan.per_c), kThreads, std::size_t(rows * pitch * 2), stream>>>(a, plan);
  } else {
    const long long blocks = (a.B * a.H * a.C * a.Wd * a.D + kThreads - 1) / kThreads;
    words<<<unsigned(blocks), kThreads, 0, stream>>>(a);
  }
  return cudaGetLastError();
}
