// Tensors whose generator is one law with constant parameters: the bulk of all inputs, so they are made four elements a
// block of random bits and, but for f64, in single precision. Single source, the same bits on every device: see maths.h
// for how.
#pragma once

#include "verifier/inputs/codec.h"
#include "verifier/inputs/inputs.h"
#include "verifier/inputs/interpret.h"

namespace kbench::inputs {

inline constexpr std::int64_t kPlainBlock = 4;

#ifdef __CUDA_ARCH__
KB_HD float add(float a, float b) { return __fadd_rn(a, b); }
KB_HD float mul(float a, float b) { return __fmul_rn(a, b); }
KB_HD float root(float a) { return __fsqrt_rn(a); }
#else
inline float add(float a, float b) { return a + b; }
inline float mul(float a, float b) { return a * b; }
inline float root(float a) { return std::sqrt(a); }
#endif

template <int n>
KB_HD float polynomial_single(float x, const float (&c)[n]) {  // highest power first
  float sum = c[0];
  for (int i = 1; i < n; ++i) sum = add(mul(sum, x), c[i]);
  return sum;
}

// ln(x) for normal x > 0, within 2 ulp: the algorithm of Cephes' logf.
KB_HD float logarithm_single(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>(bits >> 23) - 126;
  bits = (bits & 0x007FFFFFu) | 0x3F000000u;  // [0.5, 1)
  float m;
  std::memcpy(&m, &bits, sizeof m);
  if (m < 0.70710678f) {
    --exponent;
    m = add(m, m);
  }
  m = add(m, -1.0f);
  const float c[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
                     -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const float square = mul(m, m), e = static_cast<float>(exponent);
  float low = mul(mul(square, m), polynomial_single(m, c));
  low = add(low, mul(e, -2.12194440e-4f));
  low = add(low, mul(square, -0.5f));
  return add(add(m, low), mul(e, 0.693359375f));
}

// A standard normal number from 32 random bits: one for the sign, 31 for the tail's probability. |z| < 6.4. Giles,
// "Approximating the erfinv function", 2010, single precision.
KB_HD float normal_single(std::uint32_t bits) {
  const float u =
      mul(add(static_cast<float>(bits & 0x7FFFFFFFu), 0.5f), 4.656612873077393e-10f);  // (0, 1]: twice the tail
  const float x = add(1.0f, -u);
  float w = -logarithm_single(mul(u, add(2.0f, -u)));
  float p;
  if (w < 5.0f) {
    w = add(w, -2.5f);
    const float c[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                       -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
    p = polynomial_single(w, c);
  } else {
    w = add(root(w), -3.0f);
    const float c[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                       -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
    p = polynomial_single(w, c);
  }
  const float z = mul(1.41421356f, mul(p, x));
  return (bits >> 31) != 0 ? -z : z;
}

KB_HD std::uint64_t plain_bits(const Program& program, std::uint32_t random) {
  const Plain& plain = program.plain;
  switch (plain.law) {
    case Law::normal: {
      const float value = add(static_cast<float>(plain.a), mul(static_cast<float>(plain.b), normal_single(random)));
      if (program.dtype == DType::bf16) return kb::bf16(value).bits;
      return encode(program.dtype, static_cast<double>(value));
    }
    case Law::uniform:
      return encode(program.dtype, add(plain.a, mul(mul(add(static_cast<double>(random), 0.5), 2.3283064365386963e-10),
                                                    sub(plain.b, plain.a))));
    case Law::integer:
      return encode(program.dtype,
                    add(plain.a, static_cast<double>(random * static_cast<std::uint64_t>(plain.b) >> 32)));
    default:  // bernoulli
      return encode(program.dtype, static_cast<double>(random) < plain.b ? 1.0 : 0.0);
  }
}

// Elements [4*block, 4*block + 4) of the tensor at `out`, as far as there are any.
KB_HD void plain_store(const Program& program, std::uint64_t seed, std::int64_t block, void* out) {
  const PhiloxBlock random = draw(program, seed, 0, static_cast<std::uint64_t>(block));
  const std::int64_t first = block * kPlainBlock;
  for (int i = 0; i < kPlainBlock; ++i)
    if (first + i < program.elements) store_bits(program.dtype, plain_bits(program, random.word[i]), out, first + i);
}

}  // namespace kbench::inputs
