// The passes of the comparison rules: single source for the cpu device (ranges to threads) and the cuda device
// (grid-stride loops).
//
// A device runs a pass by cutting [0, units(plan)) into ranges, every unit in exactly one of them, calling
// accumulate(plan, begin, end, sums) for each, and merging the sums; the order does not matter. A unit is a value, or a
// whole row or column for the passes that write scales and for plans by row (`kByRow`); nothing but the scales is
// written. Empty tensors have no units.
#pragma once

#include <cstdint>

#include "kbench/types.h"
#include "verifier/device/device.h"
#include "verifier/inputs/codec.h"

namespace kbench::compare {

enum class Pass : std::uint8_t {
  exact,          // wrong: bits differ
  codes,          // wrong: codes differ by more than one; flips: by one
  near,           // wrong: |y-r| > max * (u * (|r| + s))
  bounded,        // wrong: |y-r| > relative * |r| + floor
  delta,          // wrong: |y-r| - ulps * ulp(x) > max * u * (|r-x| + s); x is `initial`
  squares,        // sum_expected2: of the finite r
  delta_squares,  // sum_expected2: of the finite r - x
  row_scale,      // row_scales[i] = rms of row i of the finite r
  column_scale,   // row_scales[rows + j] = rms of column j, where rows = count / row
};

// Of PassPlan::parameters.
inline constexpr int kUnit = 0;       // near, delta: u
inline constexpr int kMax = 1;        // near, delta: the tolerance; bounded: relative
inline constexpr int kFloor = 2;      // bounded: floor; delta: ulps
inline constexpr int kScaleKind = 3;  // near: a ScaleKind
inline constexpr int kScale = 4;      // near, delta: s of the whole tensor; outer: rms of the whole tensor
inline constexpr int kPacking = 5;    // codes: a Packing
inline constexpr int kByRow = 6;  // not 0: units are rows of `row` values, rows_wrong counts those with a wrong value
inline constexpr int kUlp = 7;    // delta: ulp(1) of the format

enum class ScaleKind : std::uint8_t { tensor, row, outer };
enum class Packing : std::uint8_t { value, int4, uint4, uint2 };  // what a stored element holds; low bits first

KB_HD Packing packing_of(const verify::PassPlan& plan) {
  return static_cast<Packing>(static_cast<int>(plan.parameters[kPacking]));
}
KB_HD int code_bits(Packing packing) { return packing == Packing::uint2 ? 2 : 4; }

KB_HD std::int64_t values_per_element(Packing packing, DType dtype) {
  if (packing != Packing::value) return 8 * inputs::stored_bytes(dtype) / code_bits(packing);
  return dtype == DType::e2m1x2 ? 2 : 1;
}
// All values of the plan: `count` is of stored elements. The exact pass takes stored elements whatever they hold.
KB_HD std::int64_t values(const verify::PassPlan& plan) {
  const bool codes = static_cast<Pass>(plan.pass) == Pass::codes;
  return codes ? plan.count * values_per_element(packing_of(plan), plan.dtype) : plan.count;
}
KB_HD std::int64_t units(const verify::PassPlan& plan) {
  const Pass pass = static_cast<Pass>(plan.pass);
  if (pass == Pass::column_scale) return plan.row;
  return pass == Pass::row_scale || plan.parameters[kByRow] != 0 ? values(plan) / plan.row : values(plan);
}

KB_HD std::uint64_t stored(DType dtype, const void* data, std::int64_t index) {
  switch (inputs::stored_bytes(dtype)) {
    case 8:
      return inputs::element_at<std::uint64_t>(data, index);
    case 4:
      return inputs::element_at<std::uint32_t>(data, index);
    case 2:
      return inputs::element_at<std::uint16_t>(data, index);
    default:
      return inputs::element_at<std::uint8_t>(data, index);
  }
}

KB_HD bool is_signed_integer(DType dtype) { return dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64; }
// Formats of sign and magnitude; e8m0 is none.
KB_HD bool is_floating(DType dtype) { return dtype <= DType::e5m2; }
// The largest magnitude that is not NaN: the code of infinity where the format has one.
KB_HD std::uint64_t largest_ordered(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x7FF0000000000000ull;
    case DType::f32:
      return 0x7F800000ull;
    case DType::bf16:
      return 0x7F80;
    case DType::f16:
      return 0x7C00;
    case DType::e4m3:
      return 0x7E;
    case DType::e5m2:
      return 0x7C;
    default:
      return 7;  // e2m1
  }
}

inline constexpr std::uint64_t kMiddle = 0x8000000000000000ull;
inline constexpr std::uint64_t kNoOrder = ~std::uint64_t{0};  // NaN: no neighbour of anything

// The place of a value among all values of its format: neighbours differ by one, -0 and +0 are one place.
KB_HD std::uint64_t ordered(DType dtype, Packing packing, const void* data, std::int64_t index) {
  if (packing != Packing::value || dtype == DType::e2m1x2) {
    const int bits = code_bits(packing);
    const std::int64_t in_each = 8 * inputs::stored_bytes(dtype) / bits;
    const std::uint64_t code = stored(dtype, data, index / in_each) >> (bits * (index % in_each)) & ((1u << bits) - 1);
    if (packing == Packing::int4) return code ^ 8;
    if (packing == Packing::value) return (code & 8) != 0 ? kMiddle - (code & 7) : kMiddle + code;
    return code;
  }
  const std::uint64_t bits = stored(dtype, data, index);
  if (is_floating(dtype)) {
    const std::uint64_t sign = std::uint64_t{1} << (8 * inputs::stored_bytes(dtype) - 1), magnitude = bits & (sign - 1);
    if (magnitude > largest_ordered(dtype)) return kNoOrder;
    return (bits & sign) != 0 ? kMiddle - magnitude : kMiddle + magnitude;
  }
  if (!is_signed_integer(dtype)) return bits;
  const int unused = 64 - 8 * inputs::stored_bytes(dtype);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused) ^ kMiddle;
}

struct Mismatch {
  double error;  // 1 is the edge of the tolerance; infinite where there is none
  bool wrong, flip, nonfinite;
};

KB_HD double scale_at(const verify::PassPlan& plan, std::int64_t index) {
  const ScaleKind kind = static_cast<ScaleKind>(static_cast<int>(plan.parameters[kScaleKind]));
  if (kind == ScaleKind::tensor) return plan.parameters[kScale];
  const float* scales = reinterpret_cast<const float*>(plan.row_scales.data);
  const double row = static_cast<double>(scales[index / plan.row]);
  if (kind == ScaleKind::row) return row;
  const double column = static_cast<double>(scales[plan.count / plan.row + index % plan.row]);
  return plan.parameters[kScale] > 0 ? row * column / plan.parameters[kScale] : 0;
}

KB_HD double ulp_of(double x, double ulp_of_one) {
  const double a = inputs::magnitude(x);
  if (a < 1e-300 || !inputs::is_finite(a)) return 0;
  return inputs::from_bits(inputs::bits_of(a) & 0x7FF0000000000000ull) * ulp_of_one;
}

KB_HD double allowed(const verify::PassPlan& plan, std::int64_t index, double r) {
  const double* p = plan.parameters;
  switch (static_cast<Pass>(plan.pass)) {
    case Pass::near:
      return p[kMax] * p[kUnit] * (inputs::magnitude(r) + scale_at(plan, index));
    case Pass::bounded:
      return p[kMax] * inputs::magnitude(r) + p[kFloor];
    default:
      return p[kMax] * p[kUnit] *
             (inputs::magnitude(r - inputs::load(plan.dtype, plan.initial.data, index)) + p[kScale]);
  }
}

// One value of a numeric pass. Adds to the sums of squares.
KB_HD Mismatch compare_numbers(const verify::PassPlan& plan, std::int64_t index, verify::PassSums& sums) {
  const double y = inputs::load(plan.dtype, plan.got.data, index),
               r = inputs::load(plan.dtype, plan.expected.data, index);
  if (!inputs::is_finite(r) || !inputs::is_finite(y)) {
    const bool same = y == r || (inputs::is_nan(y) && inputs::is_nan(r));
    return {same ? 0 : inputs::infinity(), !same, false, !same && !inputs::is_finite(y)};
  }
  const double limit = allowed(plan, index, r);
  double difference = inputs::magnitude(y - r), size = r;
  if (static_cast<Pass>(plan.pass) == Pass::delta) {
    // What the format of x cannot hold is no error of the update, and does not count when a tolerance is measured.
    const double x = inputs::load(plan.dtype, plan.initial.data, index);
    difference -= plan.parameters[kFloor] * ulp_of(x, plan.parameters[kUlp]);
    if (difference < 0) difference = 0;
    size = r - x;
  }
  sums.sum_error2 += difference * difference;
  sums.sum_expected2 += size * size;
  if (difference == 0) return {0, false, false, false};
  return {limit > 0 ? difference / limit : inputs::infinity(), !(difference <= limit), false, false};
}

KB_HD Mismatch compare_value(const verify::PassPlan& plan, std::int64_t index, verify::PassSums& sums) {
  const Pass pass = static_cast<Pass>(plan.pass);
  if (pass == Pass::exact) {
    if (stored(plan.dtype, plan.got.data, index) == stored(plan.dtype, plan.expected.data, index))
      return {0, false, false, false};
    const bool nonfinite =
        is_floating(plan.dtype) && !inputs::is_finite(inputs::load(plan.dtype, plan.got.data, index));
    return {inputs::infinity(), true, false, nonfinite};
  }
  if (pass == Pass::codes) {
    const Packing packing = packing_of(plan);
    const std::uint64_t y = ordered(plan.dtype, packing, plan.got.data, index);
    const std::uint64_t r = ordered(plan.dtype, packing, plan.expected.data, index);
    const std::uint64_t distance = y > r ? y - r : r - y;
    const bool nan = is_floating(plan.dtype) && packing == Packing::value && (y == kNoOrder || r == kNoOrder);
    if (distance == 0) return {0, false, false, false};
    if (distance == 1 && !nan) return {1, false, true, false};
    return {nan ? inputs::infinity() : static_cast<double>(distance), true, false, nan && y == kNoOrder};
  }
  return compare_numbers(plan, index, sums);
}

// Root of the mean square of the finite values begin, begin+step, … below end; of r, or of r - x.
KB_HD double sum_of_squares(const verify::PassPlan& plan, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const bool minus_initial = static_cast<Pass>(plan.pass) == Pass::delta_squares;
  double sum = 0;
  for (std::int64_t i = begin; i < end; i += step) {
    double r = inputs::load(plan.dtype, plan.expected.data, i);
    if (minus_initial) r -= inputs::load(plan.dtype, plan.initial.data, i);
    if (inputs::is_finite(r)) sum += r * r;
  }
  return sum;
}

KB_HD void accumulate_values(const verify::PassPlan& plan, std::int64_t begin, std::int64_t end,
                             verify::PassSums& sums) {
  for (std::int64_t i = begin; i < end; ++i) {
    const Mismatch mismatch = compare_value(plan, i, sums);
    if (mismatch.error > sums.max_error) sums.max_error = mismatch.error;
    if (mismatch.flip) ++sums.flips;
    if (mismatch.nonfinite) ++sums.nonfinite;
    if (!mismatch.wrong) continue;
    ++sums.wrong;
    if (sums.first < 0 || i < sums.first) sums.first = i;
  }
}

KB_HD void accumulate(const verify::PassPlan& plan, std::int64_t begin, std::int64_t end, verify::PassSums& sums) {
  float* scales = reinterpret_cast<float*>(plan.row_scales.data);
  switch (static_cast<Pass>(plan.pass)) {
    case Pass::squares:
    case Pass::delta_squares:
      sums.sum_expected2 += sum_of_squares(plan, begin, end, 1);
      break;
    case Pass::row_scale:
      for (std::int64_t i = begin; i < end; ++i)
        scales[i] = static_cast<float>(
            inputs::root(sum_of_squares(plan, i * plan.row, (i + 1) * plan.row, 1) / static_cast<double>(plan.row)));
      break;
    case Pass::column_scale: {
      const std::int64_t rows = plan.count / plan.row;
      for (std::int64_t j = begin; j < end; ++j)
        scales[rows + j] =
            static_cast<float>(inputs::root(sum_of_squares(plan, j, plan.count, plan.row) / static_cast<double>(rows)));
      break;
    }
    default:
      if (plan.parameters[kByRow] == 0) {
        accumulate_values(plan, begin, end, sums);
        break;
      }
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t before = sums.wrong;
        accumulate_values(plan, i * plan.row, (i + 1) * plan.row, sums);
        if (sums.wrong > before) ++sums.rows_wrong;
      }
  }
}

KB_HD void merge(verify::PassSums& into, const verify::PassSums& from) {
  into.wrong += from.wrong;
  into.nonfinite += from.nonfinite;
  into.flips += from.flips;
  into.rows_wrong += from.rows_wrong;
  into.sum_error2 += from.sum_error2;
  into.sum_expected2 += from.sum_expected2;
  if (from.max_error > into.max_error) into.max_error = from.max_error;
  if (from.first >= 0 && (into.first < 0 || from.first < into.first)) into.first = from.first;
}

}  // namespace kbench::compare
