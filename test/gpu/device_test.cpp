// The cuda device against the cpu device: the same inputs bit by bit, the same verdicts of the passes, and memory as
// promised.
#include <catch2/catch.hpp>
#include <cstring>

#include "verifier/compare/compare.h"
#include "verifier/device/device.h"
#include "verifier/inputs/inputs.h"

using namespace kbench;
using namespace kbench::verify;

namespace {

Device& cpu() {
  static const auto device = open_cpu_device();
  return *device;
}
Device& gpu() {
  static const auto device = open_cuda_device();
  return *device;
}

Problem one_tensor(DType dtype, const std::string& gen) {
  Problem problem;
  problem.name = "one";
  problem.dims = {"M", "C"};
  problem.tensors = {{"x", dtype, {"M", "C"}, Role::inout, gen, "exact", {}}};
  return problem;
}

std::vector<std::byte> filled(Device& device, const Problem& problem, const Dims& dims, std::uint64_t seed) {
  const Tensor& tensor = problem.tensors[0];
  const auto buffer = device.allocate(static_cast<std::uint64_t>(problem.bytes(tensor, dims)));
  device.fill({inputs::compile(problem, tensor, dims).program, {}, buffer->region()}, seed);
  std::vector<std::byte> bytes(buffer->region().bytes);
  device.read(bytes.data(), buffer->region());
  return bytes;
}

std::unique_ptr<Buffer> uploaded(Device& device, const std::vector<std::byte>& bytes) {
  auto buffer = device.allocate(bytes.size());
  device.write(buffer->region(), bytes.data());
  return buffer;
}

compare::Outcome judged(Device& device, const Tensor& tensor, const Dims& dims, const std::vector<std::byte>& got,
                        const std::vector<std::byte>& expected) {
  const auto g = uploaded(device, got), e = uploaded(device, expected);
  return compare::parse(tensor)->judge(device, tensor, dims, g->region(), e->region(), {});
}

}  // namespace

TEST_CASE("inputs have the same bits on cpu and cuda") {
  const Dims dims{{"M", 301}, {"C", 1027}};
  const std::pair<DType, const char*> kinds[] = {
      {DType::bf16, "normal(0,4)"},        {DType::f32, "normal(1,0.1)"},
      {DType::e4m3, "normal(0,1)"},        {DType::f64, "uniform(-2,2)"},
      {DType::f16, "loguniform(0.01,10)"}, {DType::i32, "int(-1000,1001)"},
      {DType::u8, "bernoulli(1/1024)"},    {DType::u64, "bits"},
      {DType::f32, "exponential(0.001)"},  {DType::f32, "sin(i1*0.01) + normal(0,1)"}};
  for (const auto& [dtype, gen] : kinds) {
    INFO(name_of(dtype) << " " << gen);
    const Problem problem = one_tensor(dtype, gen);
    const auto a = filled(cpu(), problem, dims, 42), b = filled(gpu(), problem, dims, 42);
    CHECK(a == b);
    CHECK(filled(gpu(), problem, dims, 43) != b);
  }
}

TEST_CASE("poison, guards and hashes on cuda") {
  const auto shared = gpu().allocate_shared(1'000'003);
  CHECK(shared->fd() >= 0);
  for (const Region region : {shared->tensor(), shared->front_guard(), shared->back_guard()}) {
    gpu().poison(region, 7);
    CHECK(gpu().unpoisoned(region, 7) == 0);
    CHECK(gpu().unpoisoned(region, 8) > static_cast<std::int64_t>(region.bytes / 2));
  }
  const std::uint64_t before = gpu().hash(shared->tensor());
  const std::byte one{0x5a};
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{500'001}, shared->tensor().bytes - 1}) {
    const Region place{shared->tensor().data + at, 1};
    std::byte old;
    gpu().read(&old, place);
    const std::byte other = old ^ one;
    gpu().write(place, &other);
    CHECK(gpu().hash(shared->tensor()) != before);
    CHECK(gpu().unpoisoned(shared->tensor(), 7) == 1);
    gpu().write(place, &old);
    CHECK(gpu().hash(shared->tensor()) == before);
  }
}

TEST_CASE("comparison rules decide alike on cpu and cuda") {
  const Dims dims{{"M", 67}, {"C", 129}};
  for (const char* rule : {"exact", "near(scale=row)", "near(scale=tensor)", "near(scale=outer)"}) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      Problem problem = one_tensor(dtype, "normal(0,1)");
      Tensor& tensor = problem.tensors[0];
      tensor.rule = rule;
      tensor.tolerance = {4, 4};
      const auto expected = filled(cpu(), problem, dims, 1);
      for (const std::size_t at : {std::size_t{0}, expected.size() / 2, expected.size() - 1}) {
        auto got = expected;
        got[at] ^= std::byte{0x40};
        const auto a = judged(cpu(), tensor, dims, got, expected), b = judged(gpu(), tensor, dims, got, expected);
        INFO(rule << " " << name_of(dtype) << " byte " << at << ": " << a.reason << " | " << b.reason);
        CHECK(a.equal == b.equal);
        CHECK(a.wrong == b.wrong);
        CHECK(a.first == b.first);
      }
      CHECK(judged(gpu(), tensor, dims, expected, expected).equal);
    }
  }
}

TEST_CASE("more than 2^31 elements: the last one is made, compared and hashed") {
  const Dims dims{{"M", 33}, {"C", std::int64_t{1} << 27}};  // 4.4e9 bytes
  Problem problem = one_tensor(DType::u8, "int(0,200)");
  const Tensor& tensor = problem.tensors[0];
  const auto bytes = static_cast<std::uint64_t>(problem.bytes(tensor, dims));
  const auto a = gpu().allocate(bytes), b = gpu().allocate(bytes);
  const inputs::Program program = inputs::compile(problem, tensor, dims).program;
  gpu().fill({program, {}, a->region()}, 5);
  gpu().fill({program, {}, b->region()}, 5);
  CHECK(gpu().hash(a->region()) == gpu().hash(b->region()));
  CHECK(compare::parse(tensor)->judge(gpu(), tensor, dims, a->region(), b->region(), {}).equal);
  const std::byte odd{255};
  gpu().write({b->region().data + bytes - 1, 1}, &odd);
  CHECK(gpu().hash(a->region()) != gpu().hash(b->region()));
  const auto outcome = compare::parse(tensor)->judge(gpu(), tensor, dims, a->region(), b->region(), {});
  CHECK_FALSE(outcome.equal);
  CHECK(outcome.first == static_cast<std::int64_t>(bytes - 1));
}

TEST_CASE("the canary is steady and the facts are there") {
  std::vector<double> us;
  for (int i = 0; i < 5; ++i) us.push_back(gpu().canary());
  for (const double value : us) {
    CHECK(value > 100);
    CHECK(value < 5 * us[0]);
  }
  CHECK(gpu().facts().units > 0);
  CHECK(gpu().facts().uuid.rfind("GPU-", 0) == 0);
  CHECK(gpu().facts().clock_mhz_max > 0);
}
