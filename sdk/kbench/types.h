// The small number formats of the tasks, with the same bits on every device and compiler.
//
// Each type is its raw storage (`bits`), an explicit conversion to float (always exact) and an explicit construction
// from float: one rounding to nearest, ties to even. Integer arithmetic alone, so neither fast-math flags nor a flush
// of denormals changes a result. The tensors of a task are arrays of these types; they have the layout of CUDA's
// __nv_bfloat16, __half, __nv_fp8_e4m3, ….
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KB_HD __host__ __device__ __forceinline__
#else
#define KB_HD inline
#endif

namespace kb {

namespace detail {

KB_HD std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
KB_HD float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// |x| (f32 bits without sign, not NaN) to the code of a format with `mantissa` bits and exponent bias `bias`, denormals
// included, as if its exponent had no upper end; the caller saturates.
template <int mantissa, int bias>
KB_HD std::uint32_t encode(std::uint32_t magnitude) {
  constexpr int kShift = 23 - mantissa;
  constexpr int kMinNormal = 128 - bias;  // f32 exponent field of the format's smallest normal number
  const int exponent = static_cast<int>(magnitude >> 23);
  if (exponent >= kMinNormal) {
    const std::uint32_t rounded = magnitude + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1);
    return (rounded >> kShift) - (static_cast<std::uint32_t>(127 - bias) << mantissa);
  }
  const int shift = kShift + kMinNormal - (exponent > 0 ? exponent : 1);
  if (shift > 24) return 0;  // below half of the smallest denormal
  const std::uint32_t significand = (magnitude & 0x7fffffu) | (exponent > 0 ? 0x800000u : 0u);
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

// Code without sign, finite, to its value. Denormals go through an integer conversion, which is exact and never a
// denormal itself.
template <int mantissa, int bias>
KB_HD float decode(std::uint32_t code) {
  const float denormal = static_cast<float>(static_cast<std::int32_t>(code)) * float_of((128u - bias - mantissa) << 23);
  const float normal = float_of((code << (23 - mantissa)) + (static_cast<std::uint32_t>(127 - bias) << 23));
  return (code >> mantissa) == 0 ? denormal : normal;
}

KB_HD float with_sign(float magnitude, std::uint32_t negative) {
  return float_of(bits_of(magnitude) | (negative ? 0x80000000u : 0u));
}

}  // namespace detail

struct bf16 {
  std::uint16_t bits;
  bf16() = default;
  // Overflow gives infinity, NaN stays NaN.
  KB_HD explicit bf16(float x) {
    const std::uint32_t b = detail::bits_of(x);
    if ((b & 0x7fffffffu) > 0x7f800000u)
      bits = static_cast<std::uint16_t>((b >> 16) | 0x40u);
    else
      bits = static_cast<std::uint16_t>((b + 0x7fffu + ((b >> 16) & 1)) >> 16);
  }
  KB_HD explicit operator float() const { return detail::float_of(static_cast<std::uint32_t>(bits) << 16); }
};

struct f16 {
  std::uint16_t bits;
  f16() = default;
  // Overflow gives infinity, NaN stays NaN.
  KB_HD explicit f16(float x) {
    const std::uint32_t b = detail::bits_of(x), magnitude = b & 0x7fffffffu;
    std::uint32_t code;
    if (magnitude > 0x7f800000u)
      code = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
    else if ((code = detail::encode<10, 15>(magnitude)) > 0x7c00u)
      code = 0x7c00u;
    bits = static_cast<std::uint16_t>(((b >> 16) & 0x8000u) | code);
  }
  KB_HD explicit operator float() const {
    const std::uint32_t code = bits & 0x7fffu;
    const float magnitude =
        code >= 0x7c00u ? detail::float_of(0x7f800000u | ((code & 0x3ffu) << 13)) : detail::decode<10, 15>(code);
    return detail::with_sign(magnitude, bits & 0x8000u);
  }
};

// OCP E4M3FN: largest 448, no infinity, NaN is 0x7f (and 0xff). Saturates, infinity included.
struct e4m3 {
  std::uint8_t bits;
  e4m3() = default;
  KB_HD explicit e4m3(float x) {
    const std::uint32_t b = detail::bits_of(x), magnitude = b & 0x7fffffffu;
    std::uint32_t code = 0x7fu;
    if (magnitude <= 0x7f800000u && (code = detail::encode<3, 7>(magnitude)) > 0x7eu) code = 0x7eu;
    bits = static_cast<std::uint8_t>(((b >> 24) & 0x80u) | code);
  }
  KB_HD explicit operator float() const {
    const std::uint32_t code = bits & 0x7fu;
    const float magnitude = code == 0x7fu ? detail::float_of(0x7fc00000u) : detail::decode<3, 7>(code);
    return detail::with_sign(magnitude, bits & 0x80u);
  }
};

// OCP E5M2: largest finite 57344. Saturates to it, infinity included; codes of infinity and NaN decode as such.
struct e5m2 {
  std::uint8_t bits;
  e5m2() = default;
  KB_HD explicit e5m2(float x) {
    const std::uint32_t b = detail::bits_of(x), magnitude = b & 0x7fffffffu;
    std::uint32_t code = 0x7eu;
    if (magnitude <= 0x7f800000u && (code = detail::encode<2, 15>(magnitude)) > 0x7bu) code = 0x7bu;
    bits = static_cast<std::uint8_t>(((b >> 24) & 0x80u) | code);
  }
  KB_HD explicit operator float() const {
    const std::uint32_t code = bits & 0x7fu;
    const float magnitude =
        code >= 0x7cu ? detail::float_of(0x7f800000u | ((code & 3u) << 21)) : detail::decode<2, 15>(code);
    return detail::with_sign(magnitude, bits & 0x80u);
  }
};

// OCP E8M0: 2^(bits - 127), a scale; 255 is NaN. From float: the nearest power of two, a tie (1.5 * 2^k) to the even
// code; zero and what is too small to 2^-127, infinity to 2^127, negative numbers and NaN to NaN.
struct e8m0 {
  std::uint8_t bits;
  e8m0() = default;
  KB_HD explicit e8m0(float x) {
    const std::uint32_t b = detail::bits_of(x);
    std::uint32_t code = 0xffu;
    if (b <= 0x7f800000u) {
      if (b < 0x00800000u)
        code =
            b > 0x00600000u ? 1 : 0;  // the codes' only denormal is 2^-127 = 0x00400000; its tie with 2^-126 goes to it
      else if ((code = (b + 0x3fffffu + ((b >> 23) & 1)) >> 23) > 0xfeu)
        code = 0xfeu;
    } else if (b == 0x80000000u) {
      code = 0;
    }
    bits = static_cast<std::uint8_t>(code);
  }
  KB_HD explicit operator float() const {
    const std::uint32_t code = bits;
    return detail::float_of(code == 0 ? 0x00400000u : code == 0xffu ? 0x7fc00000u : code << 23);
  }
};

// OCP E2M1 (FP4), four bits: 0 0.5 1 1.5 2 3 4 6 and their negatives. Encoding saturates at 6; NaN, which the format
// lacks, gives 6.
KB_HD float decode_e2m1(std::uint32_t nibble) {
  return detail::with_sign(detail::decode<1, 1>(nibble & 7u), nibble & 8u);
}
KB_HD std::uint32_t encode_e2m1(float x) {
  const std::uint32_t b = detail::bits_of(x), magnitude = b & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 7u;
  const std::uint32_t code = detail::encode<1, 1>(magnitude);
  return (b >> 28 & 8u) | (code > 7u ? 7u : code);
}

// Two of them in a byte; element 2i of a tensor is the low nibble of byte i.
struct e2m1x2 {
  std::uint8_t bits;
  e2m1x2() = default;
  KB_HD e2m1x2(float low, float high) : bits(static_cast<std::uint8_t>(encode_e2m1(low) | encode_e2m1(high) << 4)) {}
  KB_HD float low() const { return decode_e2m1(bits & 15u); }
  KB_HD float high() const { return decode_e2m1(bits >> 4); }
};

static_assert(sizeof(bf16) == 2 && sizeof(f16) == 2 && sizeof(e4m3) == 1 && sizeof(e5m2) == 1 && sizeof(e8m0) == 1 &&
              sizeof(e2m1x2) == 1);

}  // namespace kb
