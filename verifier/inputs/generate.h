// Runs a Program: single source for CPU and CUDA, the same bits on both (see maths.h).
//
// A device fills a tensor in two steps, the second only where program.rows > 0, after all elements of the first are
// stored:
//   for every unit in [0, generation_units(program)):  generate_unit(program, seed, unit, reads, out);
//   for every row in [0, program.rows):                finish_row(program, seed, row, reads, out);
// Calls of one step are independent of each other. `reads` holds the device addresses of Compiled::reads, in order,
// already filled. A row may be as long as the tensor (offsets), then the second step is one call and serial.
#pragma once

#include <cstdint>

#include "verifier/inputs/finish.h"
#include "verifier/inputs/interpret.h"
#include "verifier/inputs/plain.h"

namespace kbench::inputs {

// Writes element `index` of the tensor at `out`.
KB_HD void generate_store(const Program& program, std::uint64_t seed, std::int64_t index, const void* const* reads,
                          void* out) {
  const std::uint64_t bits = program.finish == Finish::raw_bits
                                 ? first64(draw(program, seed, 0, static_cast<std::uint64_t>(index)))
                                 : encode(program.dtype, element_value(program, seed, index, reads));
  store_bits(program.dtype, bits, out, index);
}

// A unit is an element, or a block of them where the law is plain.
KB_HD std::int64_t generation_units(const Program& program) {
  return program.plain.law == Law::none ? program.elements : (program.elements + kPlainBlock - 1) / kPlainBlock;
}
KB_HD void generate_unit(const Program& program, std::uint64_t seed, std::int64_t unit, const void* const* reads,
                         void* out) {
  if (program.plain.law == Law::none)
    generate_store(program, seed, unit, reads, out);
  else
    plain_store(program, seed, unit, out);
}

}  // namespace kbench::inputs
