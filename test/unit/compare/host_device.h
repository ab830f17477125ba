// A device over host memory with what comparing needs: passes cut into uneven ranges over threads, to be merged in any
// order.
#pragma once

#include <cstring>
#include <thread>
#include <vector>

#include "verifier/compare/compare.h"
#include "verifier/compare/passes.h"
#include "verifier/device/device.h"

namespace kbench::compare_test {

using verify::Region;

class HostBuffer final : public verify::Buffer {
 public:
  explicit HostBuffer(std::uint64_t bytes) : bytes_(bytes) {}
  Region region() const override { return {const_cast<std::byte*>(bytes_.data()), bytes_.size()}; }

 private:
  std::vector<std::byte> bytes_;
};

class HostDevice final : public verify::Device {
 public:
  const verify::Facts& facts() const override { return facts_; }
  verify::Bounds bounds() const override { return {}; }
  std::uint64_t free_bytes() override { return 0; }
  bool has_kernels() const override { return false; }
  std::unique_ptr<verify::Buffer> allocate(std::uint64_t bytes, int) override {
    return std::make_unique<HostBuffer>(bytes);
  }
  std::unique_ptr<verify::SharedBuffer> allocate_shared(std::uint64_t, int) override {
    throw verify::DeviceFault("not here");
  }
  void read(std::byte* to, Region from) override { std::memcpy(to, from.data, from.bytes); }
  void write(Region to, const std::byte* from) override { std::memcpy(to.data, from, to.bytes); }
  void zero(Region region) override { std::memset(region.data, 0, region.bytes); }
  void fill(const verify::Fill&, std::uint64_t) override {}
  void poison(Region, std::uint64_t) override {}
  std::int64_t unpoisoned(Region, std::uint64_t) override { return 0; }
  std::uint64_t hash(Region) override { return 0; }
  void copy(verify::Copy) override {}
  verify::Repetition repeat(const verify::RepetitionPlan&, verify::Peer&) override { return {}; }
  void run_reference(Reference*, const void*) override {}
  double canary() override { return 0; }
  std::vector<std::string> complaints() override { return {}; }

  verify::PassSums pass(const verify::PassPlan& plan) override {
    ++passes;
    constexpr std::int64_t kThreads = 3;
    const std::int64_t units = compare::units(plan);
    std::vector<verify::PassSums> parts(kThreads);
    std::vector<std::thread> threads;
    for (std::int64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        compare::accumulate(plan, units * t / kThreads, units * (t + 1) / kThreads, parts[static_cast<std::size_t>(t)]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    verify::PassSums sums;
    for (std::size_t t = parts.size(); t-- > 0;) compare::merge(sums, parts[t]);
    return sums;
  }

  int passes = 0;

 private:
  verify::Facts facts_;
};

template <class T>
Region region_of(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

// Judges got against expected as a tensor "y" of this dtype, shape and rule.
struct Case {
  DType dtype;
  std::vector<std::string> shape;
  std::string rule;
  Tolerance tolerance{};
  Role role = Role::output;

  Tensor tensor() const { return {"y", dtype, shape, role, "", rule, tolerance}; }

  template <class T>
  compare::Outcome judge(std::vector<T> got, std::vector<T> expected, std::vector<T> initial = {}) const {
    HostDevice device;
    const Tensor y = tensor();
    return compare::parse(y)->judge(device, y, {}, region_of(got), region_of(expected),
                                    initial.empty() ? Region{} : region_of(initial));
  }
};

}  // namespace kbench::compare_test
