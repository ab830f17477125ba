// One stored element of a tensor as a double, and back. Single source for CPU and CUDA.
//
// Storing rounds to nearest even and saturates: a finite value beyond the format's largest becomes the largest, so no
// fp8 NaN or infinity comes from a finite value. Integers likewise, NaN to 0. An e8m0 element stands for its code
// (0..255), not for 2^(code-127): generators speak of exponents. e2m1x2 stands for its byte.
#pragma once

#include <cstdint>

#include "kbench/types.h"
#include "verifier/inputs/maths.h"
#include "verifier/problem/problem.h"

namespace kbench::inputs {

template <class T>
KB_HD T element_at(const void* data, std::int64_t index) {
  return static_cast<const T*>(data)[index];
}

// 64-bit integers beyond 2^53 are rounded.
KB_HD double load(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
    case DType::f64:
      return element_at<double>(data, index);
    case DType::f32:
      return element_at<float>(data, index);
    case DType::bf16:
      return static_cast<float>(element_at<kb::bf16>(data, index));
    case DType::f16:
      return static_cast<float>(element_at<kb::f16>(data, index));
    case DType::e4m3:
      return static_cast<float>(element_at<kb::e4m3>(data, index));
    case DType::e5m2:
      return static_cast<float>(element_at<kb::e5m2>(data, index));
    case DType::e8m0:
    case DType::e2m1x2:
    case DType::u8:
      return element_at<std::uint8_t>(data, index);
    case DType::i8:
      return element_at<std::int8_t>(data, index);
    case DType::u16:
      return element_at<std::uint16_t>(data, index);
    case DType::i32:
      return element_at<std::int32_t>(data, index);
    case DType::u32:
      return element_at<std::uint32_t>(data, index);
    case DType::i64:
      return static_cast<double>(element_at<std::int64_t>(data, index));
    case DType::u64:
      return static_cast<double>(element_at<std::uint64_t>(data, index));
  }
  return 0;
}

// Finite values to +-largest; infinities stay (formats without one saturate those too), NaN stays.
KB_HD float saturated(double value, double largest) {
  if (is_finite(value) && magnitude(value) > largest) value = value < 0 ? -largest : largest;
  return static_cast<float>(value);
}
// To an integer in [least, beyond). `beyond` is 2^bits or 2^(bits-1), exact as a double where the largest integer is
// not.
KB_HD std::uint64_t whole(double value, double least, double beyond) {
  value = round_even(value);
  if (is_nan(value)) return 0;
  if (value >= beyond) return (beyond == 18446744073709551616.0 ? 0 : static_cast<std::uint64_t>(beyond)) - 1;
  if (value < least) value = least;
  return value < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
}

// The bits of the stored element, in the low bytes.
KB_HD std::uint64_t encode(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return bits_of(value);
    case DType::f32:
      return kb::detail::bits_of(saturated(value, 3.4028234663852886e38));
    case DType::bf16:
      return kb::bf16(saturated(value, 3.3895313892515355e38)).bits;
    case DType::f16:
      return kb::f16(saturated(value, 65504)).bits;
    case DType::e4m3:
      return kb::e4m3(saturated(value, 448)).bits;
    case DType::e5m2:
      return kb::e5m2(saturated(value, 57344)).bits;
    case DType::e8m0:
    case DType::e2m1x2:
    case DType::u8:
      return whole(value, 0, 256);
    case DType::i8:
      return whole(value, -128, 128);
    case DType::u16:
      return whole(value, 0, 65536);
    case DType::i32:
      return whole(value, -2147483648.0, 2147483648.0);
    case DType::u32:
      return whole(value, 0, 4294967296.0);
    case DType::i64:
      return whole(value, -9223372036854775808.0, 9223372036854775808.0);
    case DType::u64:
      return whole(value, 0, 18446744073709551616.0);
  }
  return 0;
}

KB_HD int stored_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    default:
      return 1;
  }
}

KB_HD void store_bits(DType dtype, std::uint64_t bits, void* data, std::int64_t index) {
  switch (stored_bytes(dtype)) {
    case 8:
      static_cast<std::uint64_t*>(data)[index] = bits;
      break;
    case 4:
      static_cast<std::uint32_t*>(data)[index] = static_cast<std::uint32_t>(bits);
      break;
    case 2:
      static_cast<std::uint16_t*>(data)[index] = static_cast<std::uint16_t>(bits);
      break;
    default:
      static_cast<std::uint8_t*>(data)[index] = static_cast<std::uint8_t>(bits);
      break;
  }
}

}  // namespace kbench::inputs
