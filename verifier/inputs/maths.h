// Double-precision functions whose results are the same bits on every host and on the GPU.
//
// libm and CUDA's libdevice differ in the last place, and a compiler may fuse a*b+c on one side only. So the functions
// are ours (the algorithms of fdlibm and of Wichura's AS241), made of single IEEE operations: on the device by the
// intrinsics that are never fused, on the host by plain operators compiled with -ffp-contract=off (an interface option
// of kbench_inputs). Errors are below 2 ulp, except power (a few ulp) and sin/cos beyond 1.6e6, whose reduction loses
// digits there.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "verifier/inputs/philox.h"

namespace kbench::inputs {

#ifdef __CUDA_ARCH__
KB_HD double add(double a, double b) { return __dadd_rn(a, b); }
KB_HD double mul(double a, double b) { return __dmul_rn(a, b); }
KB_HD double div(double a, double b) { return __ddiv_rn(a, b); }
KB_HD double root(double a) { return __dsqrt_rn(a); }
#else
inline double add(double a, double b) { return a + b; }
inline double mul(double a, double b) { return a * b; }
inline double div(double a, double b) { return a / b; }
inline double root(double a) { return std::sqrt(a); }
#endif
KB_HD double sub(double a, double b) { return add(a, -b); }

KB_HD std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
KB_HD double from_bits(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
KB_HD double infinity() { return from_bits(0x7FF0000000000000ull); }
KB_HD double not_a_number() { return from_bits(0x7FF8000000000000ull); }
KB_HD bool is_nan(double x) { return x != x; }
KB_HD double magnitude(double x) { return from_bits(bits_of(x) & 0x7FFFFFFFFFFFFFFFull); }
KB_HD bool is_finite(double x) { return magnitude(x) < infinity(); }
KB_HD double power_of_two(int exponent) {
  return from_bits(static_cast<std::uint64_t>(exponent + 1023) << 52);
}  // -1022..1023

KB_HD double scaled(double x, int exponent) {  // x * 2^exponent; two steps reach the subnormals
  if (exponent > 2000) exponent = 2000;
  if (exponent < -2000) exponent = -2000;
  const int half = exponent / 2;
  return mul(mul(x, power_of_two(half)), power_of_two(exponent - half));
}

// To an integer, nearest even. What is 2^52 or more is one already.
KB_HD double round_even(double x) {
  if (!(magnitude(x) < 4503599627370496.0)) return x;
  const double big = x < 0 ? -4503599627370496.0 : 4503599627370496.0;
  return sub(add(x, big), big);
}
KB_HD double floor_of(double x) {
  const double rounded = round_even(x);
  return rounded > x ? sub(rounded, 1) : rounded;
}

// c[0] + x*(c[1] + x*(… c[n-1])).
template <int n>
KB_HD double polynomial(double x, const double (&c)[n]) {
  double sum = c[n - 1];
  for (int i = n - 2; i >= 0; --i) sum = add(mul(sum, x), c[i]);
  return sum;
}

KB_HD double logarithm(double x) {
  if (is_nan(x) || x < 0) return not_a_number();
  if (x == 0) return -infinity();
  if (!is_finite(x)) return x;
  int exponent = 0;
  if (x < 2.2250738585072014e-308) {
    x = mul(x, 18014398509481984.0);  // 2^54: subnormals
    exponent = -54;
  }
  std::uint64_t bits = bits_of(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double mantissa = from_bits((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (mantissa > 1.4142135623730951) {
    mantissa = mul(mantissa, 0.5);
    ++exponent;
  }
  const double f = sub(mantissa, 1), s = div(f, add(2, f)), z = mul(s, s), w = mul(z, z), k = exponent;
  const double even[] = {3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01};
  const double odd[] = {6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01,
                        1.479819860511658591e-01};
  const double r = add(mul(w, polynomial(w, even)), mul(z, polynomial(w, odd)));
  const double half_square = mul(0.5, mul(f, f));
  const double low = add(mul(s, add(half_square, r)), mul(k, 1.90821492927058770002e-10));
  return sub(mul(k, 6.93147180369123816490e-01), sub(sub(half_square, low), f));
}

KB_HD double exponential(double x) {
  if (is_nan(x)) return x;
  if (x > 709.782712893383973096) return infinity();
  if (x < -745.13321910194110842) return 0;
  const double k = round_even(mul(x, 1.4426950408889634074));
  const double high = sub(x, mul(k, 6.93147180369123816490e-01)), low = mul(k, 1.90821492927058770002e-10);
  const double r = sub(high, low), t = mul(r, r);
  const double p[] = {1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
                      -1.65339022054652515390e-06, 4.13813679705723846039e-08};
  const double c = sub(r, mul(t, polynomial(t, p)));
  const double y = sub(1, sub(sub(low, div(mul(r, c), sub(2, c))), high));
  return scaled(y, static_cast<int>(k));
}

KB_HD double log_plus_one(double x) {
  const double u = add(1, x);
  if (u == 1) return x;
  if (!is_finite(u)) return logarithm(u);
  return div(mul(logarithm(u), x), sub(u, 1));
}

KB_HD double sine_kernel(double x) {
  const double z = mul(x, x);
  const double s[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,  -1.98412698298579493134e-04,
                      2.75573137070700676789e-06,  -2.50507602534068634195e-08, 1.58969099521155010221e-10};
  return add(x, mul(mul(z, x), polynomial(z, s)));
}
KB_HD double cosine_kernel(double x) {
  const double z = mul(x, x);
  const double c[] = {4.16666666666666019037e-02,  -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                      -2.75573143513906633035e-07, 2.08757232129817482790e-09,  -1.13596475577881948265e-11};
  const double half = mul(0.5, z), w = sub(1, half);
  return add(w, add(sub(sub(1, w), half), mul(z, mul(z, polynomial(z, c)))));
}
// sin(x + quarter_turns * pi/2). pi/2 in three parts of 33 bits: products with up to 2^20 turns are exact.
KB_HD double sine_shifted(double x, int quarter_turns) {
  if (!is_finite(x)) return not_a_number();
  const double n = round_even(mul(x, 0.636619772367581343075535));
  double r = sub(x, mul(n, 1.57079632673412561417e+00));
  r = sub(r, mul(n, 6.07710050630396597660e-11));
  r = sub(r, mul(n, 2.02226624871116645580e-21));
  const double turns = sub(n, mul(4, floor_of(mul(n, 0.25))));
  const int quadrant = (static_cast<int>(turns) + quarter_turns) & 3;
  const double value = (quadrant & 1) != 0 ? cosine_kernel(r) : sine_kernel(r);
  return (quadrant & 2) != 0 ? -value : value;
}
KB_HD double sine(double x) { return sine_shifted(x, 0); }
KB_HD double cosine(double x) { return sine_shifted(x, 1); }

KB_HD double hyperbolic_tangent(double x) {
  const double a = magnitude(x);
  double y;
  if (a < 1e-3) {
    const double t[] = {1, -1.0 / 3, 2.0 / 15};
    y = mul(a, polynomial(mul(a, a), t));
  } else {
    const double e = exponential(mul(-2, a));
    y = div(sub(1, e), add(1, e));
  }
  return x < 0 ? -y : y;
}

// x^y. Whole exponents up to 1000 by multiplication, so that powers of two are exact; the rest as exp(y*log x).
KB_HD double power(double x, double y) {
  if (y == 0) return 1;
  if (y == round_even(y) && magnitude(y) <= 1000) {
    double result = 1, base = x;
    for (int n = static_cast<int>(magnitude(y)); n != 0; n >>= 1) {
      if ((n & 1) != 0) result = mul(result, base);
      base = mul(base, base);
    }
    return y < 0 ? div(1, result) : result;
  }
  if (x == 0) return y > 0 ? 0 : infinity();
  return exponential(mul(y, logarithm(x)));
}

// The quantile of the standard normal law: Wichura, "Algorithm AS241", 1988. p in (0, 1).
KB_HD double normal_quantile(double p) {
  const double q = sub(p, 0.5);
  if (magnitude(q) <= 0.425) {
    const double r = sub(0.180625, mul(q, q));
    const double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                        1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
    const double b[] = {1.0,
                        4.2313330701600911252e+1,
                        6.8718700749205790830e+2,
                        5.3941960214247511077e+3,
                        2.1213794301586595867e+4,
                        3.9307895800092710610e+4,
                        2.8729085735721942674e+4,
                        5.2264952788528545610e+3};
    return div(mul(q, polynomial(r, a)), polynomial(r, b));
  }
  double r = root(-logarithm(q < 0 ? p : sub(1, p)));
  double x;
  if (r <= 5) {
    r = sub(r, 1.6);
    const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                        3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    const double d[] = {1.0,
                        2.05319162663775882187e0,
                        1.67638483018380384940e0,
                        6.89767334985100004550e-1,
                        1.48103976427480074590e-1,
                        1.51986665636164571966e-2,
                        5.47593808499534494600e-4,
                        1.05075007164441684324e-9};
    x = div(polynomial(r, c), polynomial(r, d));
  } else {
    r = sub(r, 5);
    const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                        2.71155556874348757815e-5, 2.01033439929228813265e-7};
    const double f[] = {1.0,
                        5.99832206555887937690e-1,
                        1.36929880922735805310e-1,
                        1.48753612908506148525e-2,
                        7.86869131145613259100e-4,
                        1.84631831751005468180e-5,
                        1.42151175831644588870e-7,
                        2.04426310338993978564e-15};
    x = div(polynomial(r, e), polynomial(r, f));
  }
  return q < 0 ? -x : x;
}

}  // namespace kbench::inputs
