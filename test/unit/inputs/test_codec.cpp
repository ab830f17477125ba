#include <catch2/catch.hpp>
#include <cmath>

#include "verifier/inputs/codec.h"

using namespace kbench;
using namespace kbench::inputs;

namespace {

std::uint64_t there_and_back(DType dtype, std::uint64_t code) {
  std::uint64_t element = 0;
  store_bits(dtype, code, &element, 0);
  return encode(dtype, load(dtype, &element, 0));
}

}  // namespace

TEST_CASE("every code of the small formats survives the way through a double", "[codec]") {
  for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    const int bits = 8 * stored_bytes(dtype);
    for (std::uint64_t code = 0; code < (1ull << bits); ++code) {
      std::uint64_t element = code;
      const double value = load(dtype, &element, 0);
      if (is_nan(value)) continue;
      if (dtype == DType::e5m2 && !is_finite(value)) continue;  // saturates
      if (there_and_back(dtype, code) != code) FAIL(name_of(dtype) << " " << code);
    }
  }
  for (const DType dtype : {DType::u8, DType::i8, DType::e8m0, DType::e2m1x2, DType::u16}) {
    for (std::uint64_t code = 0; code < (1ull << (8 * stored_bytes(dtype))); ++code) {
      std::uint64_t element = 0;
      store_bits(dtype, there_and_back(dtype, code), &element, 0);
      if (element != code) FAIL(name_of(dtype) << " " << code);
    }
  }
}

TEST_CASE("finite values saturate, fp8 never becomes NaN", "[codec]") {
  CHECK(encode(DType::e4m3, 1e9) == 0x7E);
  CHECK(encode(DType::e4m3, -449) == 0xFE);
  CHECK(encode(DType::e4m3, infinity()) == 0x7E);
  CHECK(encode(DType::e5m2, 1e9) == 0x7B);
  CHECK(encode(DType::bf16, 1e300) == 0x7F7F);
  CHECK(encode(DType::bf16, infinity()) == 0x7F80);
  CHECK(encode(DType::f16, 65519) == 0x7BFF);
  CHECK(encode(DType::f16, 1e6) == 0x7BFF);
  CHECK(encode(DType::f32, -1e300) == 0xFF7FFFFF);
  CHECK(encode(DType::f32, infinity()) == 0x7F800000);
}

TEST_CASE("rounding is to nearest even", "[codec]") {
  CHECK(encode(DType::bf16, 1 + 1.0 / 256) == 0x3F80);
  CHECK(encode(DType::bf16, 1 + 3.0 / 256) == 0x3F82);
  CHECK(encode(DType::i32, 2.5) == 2);
  CHECK(encode(DType::i32, -3.5) == 0xFFFFFFFFFFFFFFFCull);
  CHECK(encode(DType::e4m3, 0.5 * std::ldexp(1, -9)) == 0);
  CHECK(encode(DType::e4m3, 0.51 * std::ldexp(1, -9)) == 1);
}

TEST_CASE("integers end at their ends", "[codec]") {
  CHECK(encode(DType::u8, 255.5) == 255);
  CHECK(encode(DType::u8, -1) == 0);
  CHECK((encode(DType::i8, -1000) & 0xFF) == 0x80);
  CHECK(encode(DType::i8, 1000) == 0x7F);
  CHECK((encode(DType::i32, -1e18) & 0xFFFFFFFF) == 0x80000000);
  CHECK(encode(DType::i32, 1e18) == 0x7FFFFFFF);
  CHECK(encode(DType::u32, 4294967295.0) == 0xFFFFFFFF);
  CHECK(encode(DType::i64, 1e30) == 0x7FFFFFFFFFFFFFFFull);
  CHECK(encode(DType::i64, -1e30) == 0x8000000000000000ull);
  CHECK(encode(DType::i64, 9223372036854774784.0) == 9223372036854774784ull);
  CHECK(encode(DType::u64, 1e30) == ~0ull);
  CHECK(encode(DType::u64, 18446744073709549568.0) == 18446744073709549568ull);
  CHECK(encode(DType::u64, -1) == 0);
  CHECK(encode(DType::i32, not_a_number()) == 0);
  CHECK(encode(DType::u64, infinity()) == ~0ull);
}
