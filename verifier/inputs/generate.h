// Runs a Program: single source for CPU and CUDA, the same bits on both (see maths.h).
//
// A device fills a tensor in two steps, the second only where program.rows > 0, after all elements of the first are
// stored:
//   for every index in [0, program.elements):  generate_store(program, seed, index, reads, out);
//   for every row in [0, program.rows):        finish_row(program, seed, row, reads, out);
// Calls of one step are independent of each other. `reads` holds the device addresses of Compiled::reads, in order,
// already filled. A row may be as long as the tensor (offsets), then the second step is one call and serial.
#pragma once

#include <cstdint>

#include "verifier/inputs/finish.h"
#include "verifier/inputs/interpret.h"

namespace kbench::inputs {

// Writes element `index` of the tensor at `out`.
KB_HD void generate_store(const Program& program, std::uint64_t seed, std::int64_t index, const void* const* reads,
                          void* out) {
  const std::uint64_t bits = program.finish == Finish::raw_bits
                                 ? first64(draw(program, seed, 0, static_cast<std::uint64_t>(index)))
                                 : encode(program.dtype, element_value(program, seed, index, reads));
  store_bits(program.dtype, bits, out, index);
}

}  // namespace kbench::inputs
