// The formats are small enough to be tried whole: every code, every tie between two codes, and the numbers just beside
// each tie.
#include "kbench/types.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

// Value of a code by the definition of the format, in double and with none of the tested code.
double value_of(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
  const unsigned mantissa = code & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double fraction = std::ldexp(static_cast<double>(mantissa), -mantissa_bits);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (code >> (exponent_bits + mantissa_bits)) ? -magnitude : magnitude;
}

struct Format {
  int exponent_bits, mantissa_bits, bias;
  unsigned largest;  // code of the largest finite number
  unsigned above;    // code that what is beyond it becomes
  float (*decode)(unsigned code);
  unsigned (*encode)(float x);
};

template <class T>
Format format(int exponent_bits, int mantissa_bits, int bias, unsigned largest, unsigned above) {
  return {exponent_bits,
          mantissa_bits,
          bias,
          largest,
          above,
          [](unsigned code) {
            T x;
            x.bits = static_cast<decltype(x.bits)>(code);
            return static_cast<float>(x);
          },
          [](float x) { return static_cast<unsigned>(T(x).bits); }};
}

const std::vector<Format> kFormats = {
    format<kb::bf16>(8, 7, 127, 0x7f7f, 0x7f80),
    format<kb::f16>(5, 10, 15, 0x7bff, 0x7c00),
    format<kb::e4m3>(4, 3, 7, 0x7e, 0x7e),
    format<kb::e5m2>(5, 2, 15, 0x7b, 0x7b),
    {2, 1, 1, 7, 7, [](unsigned code) { return kb::decode_e2m1(code); },
     [](float x) { return static_cast<unsigned>(kb::encode_e2m1(x)); }},
};

}  // namespace

TEST_CASE("every finite code decodes to its value and encodes to itself") {
  for (const Format& f : kFormats) {
    const unsigned sign = 1u << (f.exponent_bits + f.mantissa_bits);
    long wrong = 0;
    for (unsigned code = 0; code <= f.largest; ++code) {
      const auto expected = static_cast<float>(value_of(code, f.exponent_bits, f.mantissa_bits, f.bias));
      wrong += f.decode(code) != expected || std::signbit(f.decode(code));
      wrong += f.decode(code | sign) != -expected || !std::signbit(f.decode(code | sign));
      wrong += f.encode(expected) != code || f.encode(-expected) != (code | sign);
    }
    INFO(f.exponent_bits << " exponent bits, " << f.mantissa_bits << " mantissa bits");
    CHECK(wrong == 0);
  }
}

TEST_CASE("between two codes the nearer wins, and a tie goes to the even code") {
  for (const Format& f : kFormats) {
    const unsigned sign = 1u << (f.exponent_bits + f.mantissa_bits);
    long wrong = 0;
    for (unsigned code = 0; code < f.largest; ++code) {
      const double low = value_of(code, f.exponent_bits, f.mantissa_bits, f.bias);
      const double high = value_of(code + 1, f.exponent_bits, f.mantissa_bits, f.bias);
      const auto tie = static_cast<float>((low + high) / 2);
      if (static_cast<double>(tie) != (low + high) / 2) continue;  // bf16's smallest denormal has no tie in f32
      const unsigned even = code & 1 ? code + 1 : code;
      wrong += f.encode(tie) != even || f.encode(-tie) != (even | sign);
      wrong += f.encode(std::nextafterf(tie, 0)) != code || f.encode(std::nextafterf(tie, kInfinity)) != code + 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("what is beyond the largest number becomes infinity or saturates") {
  for (const Format& f : kFormats) {
    const double largest = value_of(f.largest, f.exponent_bits, f.mantissa_bits, f.bias);
    const double step = largest - value_of(f.largest - 1, f.exponent_bits, f.mantissa_bits, f.bias);
    const auto edge =
        static_cast<float>(largest + step / 2);  // the largest code is odd, or the format saturates: not it
    CHECK(f.encode(std::nextafterf(edge, 0)) == f.largest);
    CHECK(f.encode(edge) == f.above);
    CHECK(f.encode(kInfinity) == f.above);
    CHECK(f.encode(std::numeric_limits<float>::max()) == f.above);
    CHECK(f.encode(-kInfinity) == (f.above | 1u << (f.exponent_bits + f.mantissa_bits)));
  }
}

TEST_CASE("NaN and infinity") {
  CHECK(std::isnan(static_cast<float>(kb::bf16(kNaN))));
  CHECK(std::isnan(static_cast<float>(kb::f16(kNaN))));
  CHECK(std::isnan(static_cast<float>(kb::e4m3(kNaN))));
  CHECK(std::isnan(static_cast<float>(kb::e5m2(kNaN))));
  CHECK(std::isnan(static_cast<float>(kb::e8m0(kNaN))));
  CHECK(kb::encode_e2m1(kNaN) == 7);
  // A NaN whose payload lies in the bits that are cut off is still one.
  const float low_payload = kb::detail::float_of(0x7f800001u);
  CHECK(std::isnan(static_cast<float>(kb::bf16(low_payload))));
  CHECK(std::isnan(static_cast<float>(kb::f16(low_payload))));
  CHECK(static_cast<float>(kb::bf16(-kInfinity)) == -kInfinity);
  CHECK(static_cast<float>(kb::f16(kInfinity)) == kInfinity);
  kb::e5m2 infinity;
  infinity.bits = 0xfc;
  CHECK(static_cast<float>(infinity) == -kInfinity);
  long not_nan = 0;
  for (unsigned code = 0x7f81; code <= 0x7fff; ++code) not_nan += !std::isnan(kFormats[0].decode(code));
  for (unsigned code = 0x7c01; code <= 0x7fff; ++code) not_nan += !std::isnan(kFormats[1].decode(code));
  CHECK(not_nan == 0);
}

TEST_CASE("E8M0 is the nearest power of two") {
  for (unsigned code = 0; code < 255; ++code) {
    kb::e8m0 x;
    x.bits = static_cast<std::uint8_t>(code);
    const auto value = static_cast<float>(std::ldexp(1.0, static_cast<int>(code) - 127));
    REQUIRE(static_cast<float>(x) == value);
    REQUIRE(kb::e8m0(value).bits == code);
    if (code == 254) continue;
    const float tie = 1.5f * value;
    REQUIRE(kb::e8m0(tie).bits == (code & 1 ? code + 1 : code));
    REQUIRE(kb::e8m0(std::nextafterf(tie, 0)).bits == code);
    REQUIRE(kb::e8m0(std::nextafterf(tie, kInfinity)).bits == code + 1);
  }
  CHECK(kb::e8m0(0.0f).bits == 0);
  CHECK(kb::e8m0(-0.0f).bits == 0);
  CHECK(kb::e8m0(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(kb::e8m0(kInfinity).bits == 254);
  CHECK(kb::e8m0(-1.0f).bits == 255);
}

TEST_CASE("two FP4 numbers share a byte, the even element in its low half") {
  const kb::e2m1x2 pair(-1.5f, 6.0f);
  CHECK(pair.bits == 0x7b);
  CHECK(pair.low() == -1.5f);
  CHECK(pair.high() == 6.0f);
}
