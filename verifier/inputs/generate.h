// Runs a Program: single source for CPU and CUDA, the same bits on both (see maths.h).
//
// A device fills a tensor in steps, each after all of the one before it has been stored:
//   for every unit in [0, generation_units(program)):  generate_unit(program, seed, unit, reads, out);
//   for every phase in [0, finish_phases(program)):
//     for every unit in [0, finish_units(program, phase)):  finish_unit(program, seed, phase, unit, reads, out,
//     scratch);
// Calls of one step are independent of each other. `reads` holds the device addresses of Compiled::reads, in order,
// already filled; `scratch` is finish_scratch_bytes(program) of the device's memory, aligned to 8, uninitialised. Most
// finishes take a thread a row.
#pragma once

#include <cstdint>

#include "verifier/inputs/finish.h"
#include "verifier/inputs/interpret.h"
#include "verifier/inputs/plain.h"
#include "verifier/inputs/sizes.h"

namespace kbench::inputs {

// Writes element `index` of the tensor at `out`.
KB_HD void generate_store(const Program& program, std::uint64_t seed, std::int64_t index, const void* const* reads,
                          void* out) {
  const std::uint64_t bits = program.finish == Finish::raw_bits
                                 ? first64(draw(program, seed, 0, static_cast<std::uint64_t>(index)))
                                 : encode(program.dtype, element_value(program, seed, index, reads));
  store_bits(program.dtype, bits, out, index);
}

KB_HD bool makes_sizes(const Program& program) {
  return program.finish == Finish::sizes || program.finish == Finish::offsets;
}

// A unit is an element, or a block of them where the law is plain. None where the finish asks for the values itself.
KB_HD std::int64_t generation_units(const Program& program) {
  if (makes_sizes(program) || program.finish == Finish::top) return 0;
  return program.plain.law == Law::none ? program.elements : (program.elements + kPlainBlock - 1) / kPlainBlock;
}
KB_HD void generate_unit(const Program& program, std::uint64_t seed, std::int64_t unit, const void* const* reads,
                         void* out) {
  if (program.plain.law == Law::none)
    generate_store(program, seed, unit, reads, out);
  else
    plain_store(program, seed, unit, out);
}

KB_HD int finish_phases(const Program& program) {
  return program.rows == 0 ? 0 : makes_sizes(program) ? Sizes(program).phases() : 1;
}
KB_HD std::int64_t finish_units(const Program& program, int phase) {
  const bool by_chunks = makes_sizes(program) && phase != 1 && !(phase == 3 && Sizes(program).bounded);
  return program.rows * (by_chunks ? Sizes(program).chunks : 1);
}
KB_HD std::int64_t finish_scratch_bytes(const Program& program) {
  return makes_sizes(program) ? program.rows * Sizes(program).scratch() * static_cast<std::int64_t>(sizeof(double)) : 0;
}
KB_HD void finish_unit(const Program& program, std::uint64_t seed, int phase, std::int64_t unit,
                       const void* const* reads, void* out, void* scratch) {
  if (makes_sizes(program))
    sizes_unit(program, seed, phase, unit, reads, out, static_cast<double*>(scratch));
  else
    finish_row(program, seed, unit, reads, out);
}

}  // namespace kbench::inputs
