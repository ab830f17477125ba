// Input distributions: text to a small program that makes any element of a tensor alone, the same bits on every device.
//
// The grammar is that of `gen` in a task (docs/generators-and-rules.md). A program is plain data: it is copied to the
// device as it is and run by `generate_unit` (inputs/generate.h, single source for CPU and CUDA), once an element or
// block of them; then, if it has rows, by `finish_unit`, once a row or a part of one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "verifier/problem/problem.h"

namespace kbench::inputs {

struct Instruction {
  std::uint8_t op;
  std::uint8_t a;
  std::uint16_t b;
  std::uint32_t lines;  // of search
  double value;
};

inline constexpr int kInstructionsMax = 128;
inline constexpr int kStackMax = 16;
inline constexpr int kRegistersMax = 8;
inline constexpr int kRankMax = 6;
inline constexpr int kReadsMax = 8;
inline constexpr int kLoopMax = 4096;                                      // steps of one over, repeat or pack
inline constexpr std::int64_t kFinishScratchMax = std::int64_t{64} << 20;  // bytes that the finish of a tensor may use

// What is done to each row after its elements have been made, in place: things an element alone cannot know. A row is a
// line along any axis.
enum class Finish : std::uint8_t {
  none,
  raw_bits,
  softmax,
  l2norm,
  sort_up,
  sort_down,
  cumsum,
  prefix,
  sizes,
  offsets,
  top,
  sinkhorn
};

// One law with constant parameters, made by plain.h instead of the code. normal: mean, sd; uniform: least, beyond;
// integer: least, count; bernoulli: -, probability times 2^32.
enum class Law : std::uint8_t { none, normal, uniform, integer, bernoulli };
struct Plain {
  Law law = Law::none;
  double a = 0, b = 0;
};

struct Program {
  Plain plain;
  Instruction
      code[kInstructionsMax];  // [0, length): an element; [length, total_length): applied to each after the finish
  std::int32_t length, total_length;
  std::int32_t rank;
  std::int64_t shape[kRankMax];
  std::int64_t elements;
  std::uint32_t tensor;  // index in the problem: keeps the draws of two tensors apart
  DType dtype;
  Finish finish;                  // raw_bits needs no rows: elements are random bits
  std::int64_t rows, row_length;  // rows is 0 where there is nothing to finish
  std::int64_t row_stride;        // of the elements of a row
  double finish_arguments[4];     // cumsum: chunk; top: candidates, 1 for random order; sizes, offsets: count, total,
                                  // least, largest; sinkhorn: times
};

struct BadGenerator : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // names the text and the place

// The program for one tensor at one shape. `reads` names other tensors it refers to ($name); the caller passes their
// addresses to the device in that order.
struct Compiled {
  Program program;
  std::vector<std::string> reads;
};
Compiled compile(const Problem& problem, const Tensor& tensor, const Dims& dims);

// The order in which a problem's inputs must be made ($name before its reader).
std::vector<std::size_t> order(const Problem& problem);

}  // namespace kbench::inputs
