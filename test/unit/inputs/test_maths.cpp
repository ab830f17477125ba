#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <functional>
#include <random>

#include "made.h"

using namespace kbench::inputs;

TEST_CASE("Philox gives the published vectors", "[maths]") {
  // Random123 1.14, kat_vectors: philox4x32 10.
  struct Vector {
    PhiloxBlock counter;
    std::uint64_t key;
    PhiloxBlock result;
  };
  const Vector vectors[] = {{{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
                            {{{~0u, ~0u, ~0u, ~0u}}, ~0ull, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
                            {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                             0x299f31d0a4093822,
                             {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const Vector& vector : vectors) {
    const PhiloxBlock block = philox(vector.counter, vector.key);
    for (int i = 0; i < 4; ++i) CHECK(block.word[i] == vector.result.word[i]);
  }
}

namespace {

// Largest error against libm (long double) in units of the last place of the result.
double worst(const std::function<double(double)>& ours, const std::function<long double(long double)>& theirs,
             double from, double to) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> law(from, to);
  double error = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = law(random);
    const long double expected = theirs(x);
    const double ulp = std::fabs(static_cast<double>(expected)) * DBL_EPSILON;
    if (ulp > 0) error = std::max(error, std::fabs(static_cast<double>(ours(x) - expected)) / ulp);
  }
  return error;
}
using Long = long double;

}  // namespace

TEST_CASE("functions are as good as libm's", "[maths]") {
  CHECK(worst(logarithm, [](Long x) { return std::log(x); }, 1e-9, 1) < 2);
  CHECK(worst(logarithm, [](Long x) { return std::log(x); }, 1, 1e9) < 2);
  CHECK(worst(exponential, [](Long x) { return std::exp(x); }, -50, 50) < 2);
  CHECK(worst(exponential, [](Long x) { return std::exp(x); }, -700, 700) < 2);
  CHECK(worst(log_plus_one, [](Long x) { return std::log1p(x); }, -0.5, 5) < 3);
  CHECK(worst(hyperbolic_tangent, [](Long x) { return std::tanh(x); }, 0.1, 5) < 8);
  CHECK(worst([](double x) { return power(10000, x); }, [](Long x) { return std::pow(Long(10000), x); }, -2, 2) < 40);
  // sin and cos near their zeros have the error of the reduced argument.
  for (const double range : {3.0, 100.0, 1e6}) {
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> law(-range, range);
    double error = 0;
    for (int i = 0; i < 100'000; ++i) {
      const double x = law(random);
      error = std::max({error, static_cast<double>(std::fabs(sine(x) - std::sin(Long(x)))),
                        static_cast<double>(std::fabs(cosine(x) - std::cos(Long(x))))});
    }
    CHECK(error < 3e-16);
  }
}

TEST_CASE("functions at their edges", "[maths]") {
  CHECK(logarithm(0) == -infinity());
  CHECK(is_nan(logarithm(-1)));
  CHECK(logarithm(1) == 0);
  CHECK(logarithm(5e-324) == Approx(-744.44007192138122));
  CHECK(logarithm(infinity()) == infinity());
  CHECK(exponential(-infinity()) == 0);
  CHECK(exponential(1000) == infinity());
  CHECK(exponential(0) == 1);
  CHECK(exponential(-745) == 5e-324);
  CHECK(is_nan(exponential(not_a_number())));
  CHECK(is_nan(sine(infinity())));
  CHECK(sine(0) == 0);
  CHECK(cosine(0) == 1);
  CHECK(power(2, 10) == 1024);
  CHECK(power(2, -1000) == std::ldexp(1, -1000));
  CHECK(power(0, 0) == 1);
  CHECK(power(0, 0.5) == 0);
  CHECK(power(-2, 3) == -8);
  CHECK(is_nan(power(-2, 0.5)));
  CHECK(round_even(2.5) == 2);
  CHECK(round_even(3.5) == 4);
  CHECK(round_even(-0.5) == 0);
  CHECK(round_even(4503599627370497.0) == 4503599627370497.0);
  CHECK(floor_of(-0.5) == -1);
  CHECK(floor_of(7) == 7);
  CHECK(floor_divided(-7, 2) == -4);
  CHECK(floor_divided(7, -2) == -4);
  CHECK(floor_divided(9007199254740991.0, 3) == 3002399751580330.0);
  CHECK(floor_divided(1, 0) == infinity());
}

TEST_CASE("the normal quantile is that of AS241", "[maths]") {
  // CPython's statistics.NormalDist().inv_cdf, the same algorithm on libm.
  const std::pair<double, double> golden[] = {{0.5, 0},
                                              {0.25, -0.6744897501960817},
                                              {0.6, 0.2533471031357998},
                                              {0.925, 1.439531470938456},
                                              {0.9251, 1.4402382675279632},
                                              {0.99, 2.3263478740408408},
                                              {0.001, -3.090232306167813},
                                              {1e-8, -5.61200124417479},
                                              {1e-11, -6.706023155495136},
                                              {0.9999999999, 6.361340889697421},
                                              {1.1102230246251565e-16, -8.209536151601386},
                                              {3.3306690738754696e-16, -8.076571004130123}};
  for (const auto& [p, x] : golden) CHECK(normal_quantile(p) == Approx(x).epsilon(1e-15).margin(0));
}

TEST_CASE("every bit is as it was", "[maths]") {
  // The same numbers must come out on every host and on the GPU, this year and the next: results already published
  // depend on them.
  const auto hash_of = [](const std::function<double(double)>& function, double from, double step) {
    std::vector<double> values;
    for (int i = 0; i < 20'000; ++i) values.push_back(function(from + step * i));
    return kbench::inputs_test::fingerprint(values.data(), values.size() * sizeof(double));
  };
  CHECK(hash_of(logarithm, 1e-6, 0.37) == 0xb85cb9b1ce0cdce8);
  CHECK(hash_of(exponential, -90, 0.0093) == 0x59df96d4008cebe8);
  CHECK(hash_of(sine, -1000, 0.137) == 0x830d50ec64358c03);
  CHECK(hash_of(cosine, -1000, 0.137) == 0x763967e58409413e);
  CHECK(hash_of(normal_quantile, 2e-5, 4.9e-5) == 0xc65fa6d36a633cd3);
  CHECK(hash_of(hyperbolic_tangent, -5, 0.0005) == 0xee45b52b40b11bf5);
  CHECK(hash_of([](double x) { return power(10000, x); }, -2, 0.0002) == 0x3a55d579115c6f7c);
}
