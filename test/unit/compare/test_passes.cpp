// The arithmetic of indices, without the memory that it would need.
#include <catch2/catch.hpp>
#include <numeric>

#include "host_device.h"

using namespace kbench;
using compare::Packing;
using compare::Pass;
using verify::PassPlan;
using verify::PassSums;

namespace {

PassPlan plan_of(Pass pass, DType dtype, std::int64_t count, std::int64_t row) {
  PassPlan plan{};
  plan.pass = static_cast<std::uint8_t>(pass);
  plan.dtype = dtype;
  plan.count = count;
  plan.row = row;
  return plan;
}

// A region whose element `index` is `element`: addresses are computed, nothing else is touched.
template <class T>
verify::Region virtual_region(T* element, std::int64_t index) {
  return {reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(element) -
                                       static_cast<std::uintptr_t>(index) * sizeof(T)),
          0};
}

}  // namespace

TEST_CASE("units beyond 2^31", "[passes]") {
  const std::int64_t big = (std::int64_t{1} << 33) + 6;
  CHECK(compare::units(plan_of(Pass::exact, DType::bf16, big, 2)) == big);
  CHECK(compare::units(plan_of(Pass::codes, DType::e2m1x2, big, 2)) == 2 * big);
  CHECK(compare::units(plan_of(Pass::row_scale, DType::bf16, big, 2)) == big / 2);
  CHECK(compare::units(plan_of(Pass::column_scale, DType::bf16, big, 2)) == 2);
  PassPlan plan = plan_of(Pass::codes, DType::i32, big, 2);
  plan.parameters[compare::kPacking] = static_cast<double>(Packing::uint2);
  CHECK(compare::units(plan) == 16 * big);
}

TEST_CASE("an element beyond 2^32 is found where it is", "[passes]") {
  const std::int64_t index = (std::int64_t{1} << 32) + 12345;
  float got = 2, expected = 1;
  PassPlan plan = plan_of(Pass::exact, DType::f32, index + 10, 100);
  plan.got = virtual_region(&got, index);
  plan.expected = virtual_region(&expected, index);
  PassSums sums;
  compare::accumulate(plan, index, index + 1, sums);
  CHECK(sums.wrong == 1);
  CHECK(sums.first == index);

  float scale = 1;
  plan = plan_of(Pass::near, DType::f32, index + 10, 100);
  plan.got = virtual_region(&got, index);
  plan.expected = virtual_region(&expected, index);
  plan.row_scales = virtual_region(&scale, index / 100);
  plan.parameters[compare::kScaleKind] = static_cast<double>(compare::ScaleKind::row);
  plan.parameters[compare::kUnit] = plan.parameters[compare::kMax] = 1;
  sums = {};
  compare::accumulate(plan, index, index + 1, sums);
  CHECK(sums.wrong == 0);
  CHECK(sums.max_error == 0.5);
}

TEST_CASE("a packed value beyond 2^32 is found where it is", "[passes]") {
  const std::int64_t index = (std::int64_t{1} << 34) + 7;  // the high nibble of byte 2^33 + 3
  std::uint8_t got = 0x50, expected = 0x10;
  PassPlan plan = plan_of(Pass::codes, DType::e2m1x2, index, 2);
  plan.got = virtual_region(&got, index / 2);
  plan.expected = virtual_region(&expected, index / 2);
  PassSums sums;
  compare::accumulate(plan, index - 1, index + 1, sums);
  CHECK(sums.wrong == 1);
  CHECK(sums.first == index);
}

TEST_CASE("any partition gives the same counts", "[passes]") {
  std::vector<float> got(1013), expected(1013);
  std::iota(got.begin(), got.end(), 0.f);
  expected = got;
  for (std::size_t i = 0; i < got.size(); i += 7) got[i] += 1;
  PassPlan plan = plan_of(Pass::bounded, DType::f32, 1013, 1013);
  plan.got = compare_test::region_of(got);
  plan.expected = compare_test::region_of(expected);
  plan.parameters[compare::kFloor] = 0.5;
  PassSums whole;
  compare::accumulate(plan, 0, 1013, whole);
  CHECK(whole.wrong == 145);
  for (const std::int64_t step : {1, 3, 64, 1000}) {
    PassSums merged;
    for (std::int64_t end = 1013; end > 0; end -= step) {
      PassSums part;
      compare::accumulate(plan, std::max<std::int64_t>(0, end - step), end, part);
      compare::merge(merged, part);
    }
    CHECK(merged.wrong == whole.wrong);
    CHECK(merged.first == 0);
    CHECK(merged.max_error == whole.max_error);
    CHECK(merged.sum_expected2 == Approx(whole.sum_expected2));
  }
}
