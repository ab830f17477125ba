#include "verifier/grade/workspace.h"

#include <algorithm>
#include <cstring>

#include "verifier/grade/grade.h"

namespace kbench::grade {
namespace {

using verify::Region;

constexpr std::uint64_t kAlign = 256;
std::uint64_t aligned(std::uint64_t bytes, std::uint64_t to = kAlign) { return (bytes + to - 1) / to * to; }

std::uint64_t mixed(std::uint64_t sum, std::uint64_t value) {
  sum ^= value + 0x9e3779b97f4a7c15ULL + (sum << 6) + (sum >> 2);
  return sum * 0xff51afd7ed558ccdULL;
}

std::uint64_t slot_of(const Scalar& scalar) {
  std::uint64_t slot = 0;
  if (scalar.type == ScalarType::f32) {
    const float value = static_cast<float>(scalar.value);
    std::memcpy(&slot, &value, sizeof value);
  } else if (scalar.type == ScalarType::f64) {
    std::memcpy(&slot, &scalar.value, sizeof scalar.value);
  } else {
    slot = static_cast<std::uint64_t>(static_cast<std::int64_t>(scalar.value));
  }
  return slot;
}

}  // namespace

Workspace::Workspace(verify::Device& device, const Problem& problem, std::vector<Shape> shapes)
    : device_(device), problem_(problem), shapes_(std::move(shapes)) {
  if (shapes_.empty() || shapes_.size() > protocol::kShapesMax)
    throw GradeFault("task", "the task has no shapes for this device, or too many");
  if (problem.tensors.size() > protocol::kTensorsMax) throw GradeFault("task", "too many tensors");
  try {
    order_ = inputs::order(problem);
    for (const Shape& shape : shapes_) {
      auto& programs = programs_.emplace_back();
      for (const std::size_t tensor : order_)
        programs.push_back(inputs::compile(problem, problem.tensors[tensor], shape.dims));
    }
  } catch (const inputs::BadGenerator& fault) {
    throw GradeFault("task", fault.what());
  } catch (const BadExpression& fault) {
    throw GradeFault("task", fault.what());
  }
  try {
    for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
      std::uint64_t largest = 0;
      for (std::size_t s = 0; s < shapes_.size(); ++s) largest = std::max(largest, bytes(s, t));
      if (largest == 0) throw GradeFault("task", "tensor " + problem.tensors[t].name + " is empty");
      shared_.push_back(device.allocate_shared(largest, gpu_of(t)));
      private_.push_back(device.allocate(largest, gpu_of(t)));
      initial_.push_back(problem.tensors[t].role == Role::inout ? device.allocate(largest, gpu_of(t)) : nullptr);
      if (problem.tensors[t].role != Role::input) outputs_.push_back(t);
    }
  } catch (const verify::OutOfDeviceMemory& fault) {
    throw GradeFault("memory", std::string("the task's buffers do not fit: ") + fault.what());
  }
}

std::uint64_t Workspace::bytes(std::size_t shape, std::size_t tensor) const {
  return static_cast<std::uint64_t>(problem_.bytes(problem_.tensors[tensor], shapes_[shape].dims));
}

std::uint64_t Workspace::output_bytes(std::size_t shape) const {
  std::uint64_t sum = 0;
  for (const std::size_t t : outputs_) sum += aligned(bytes(shape, t));
  return sum;
}

Snapshot Workspace::make_snapshot(std::size_t shape) const {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(problem_.gpus));
  for (const std::size_t t : outputs_) sizes[static_cast<std::size_t>(gpu_of(t))] += aligned(bytes(shape, t));
  try {
    Snapshot snapshot;
    for (std::size_t gpu = 0; gpu < sizes.size(); ++gpu)
      snapshot.memory.push_back(device_.allocate(sizes[gpu], static_cast<int>(gpu)));
    return snapshot;
  } catch (const verify::OutOfDeviceMemory& fault) {
    throw GradeFault("memory", std::string("no room for a snapshot: ") + fault.what());
  }
}

Region Workspace::shared(std::size_t shape, std::size_t tensor) const {
  return {shared_[tensor]->tensor().data, bytes(shape, tensor), gpu_of(tensor)};
}
Region Workspace::expected(std::size_t shape, std::size_t tensor) const {
  return {private_[tensor]->region().data, bytes(shape, tensor), gpu_of(tensor)};
}
Region Workspace::initial(std::size_t shape, std::size_t tensor) const {
  return initial_[tensor] ? Region{initial_[tensor]->region().data, bytes(shape, tensor), gpu_of(tensor)} : Region{};
}

Region Workspace::got(std::size_t shape, const Snapshot& snapshot, std::size_t output) const {
  const int gpu = gpu_of(outputs_[output]);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < output; ++i)
    if (gpu_of(outputs_[i]) == gpu) offset += aligned(bytes(shape, outputs_[i]));
  return {snapshot.memory[static_cast<std::size_t>(gpu)]->region().data + offset, bytes(shape, outputs_[output]), gpu};
}

Region Workspace::edge(std::size_t shape, std::size_t tensor) const {
  const Region whole = shared_[tensor]->tensor();
  const std::uint64_t from = aligned(bytes(shape, tensor), 8);  // a region starts at a multiple of 8
  if (from >= whole.bytes) return {};
  return {whole.data + from, std::min(kEdgeGuardBytes, whole.bytes - from), whole.gpu};
}

std::vector<Region> Workspace::guards(std::size_t shape) const {
  std::vector<Region> regions;
  for (std::size_t t = 0; t < shared_.size(); ++t) {
    regions.push_back(shared_[t]->front_guard());
    regions.push_back(shared_[t]->back_guard());
    if (const Region region = edge(shape, t); region.bytes > 0) regions.push_back(region);
  }
  return regions;
}

std::vector<verify::Fill> Workspace::fills(std::size_t shape, bool to_shared) const {
  const auto region = [&](std::size_t tensor) { return to_shared ? shared(shape, tensor) : expected(shape, tensor); };
  std::vector<verify::Fill> all;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const inputs::Compiled& compiled = programs_[shape][i];
    verify::Fill fill{compiled.program, {}, region(order_[i])};
    for (const std::string& name : compiled.reads) {
      const Tensor* tensor = problem_.find(name, gpu_of(order_[i]));
      if (tensor == nullptr) throw GradeFault("task", "a generator reads " + name + ", which is no tensor");
      fill.reads.push_back(region(static_cast<std::size_t>(tensor - problem_.tensors.data())));
    }
    all.push_back(std::move(fill));
  }
  return all;
}

verify::RepetitionPlan Workspace::plan(std::size_t shape, const measure::Keys& keys, const Snapshot* snapshot) const {
  verify::RepetitionPlan plan{};
  plan.seed = keys.seed;
  plan.poison = keys.poison;
  plan.order = keys.order;
  plan.fills = fills(shape, true);
  plan.poisoned = guards(shape);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::size_t t = outputs_[i];
    if (problem_.tensors[t].role == Role::output) plan.poisoned.push_back(shared(shape, t));
    if (snapshot != nullptr) plan.snapshots.push_back({shared(shape, t), got(shape, *snapshot, i)});
  }
  return plan;
}

std::int64_t Workspace::strayed(std::size_t shape, std::uint64_t poison) const {
  std::int64_t bytes = 0;
  for (const Region& region : guards(shape)) bytes += device_.unpoisoned(region, poison);
  return bytes;
}

std::uint64_t Workspace::live_hash(std::size_t shape) const {
  std::uint64_t sum = 0;
  for (const std::size_t t : outputs_) sum = mixed(sum, device_.hash(shared(shape, t)));
  return sum;
}

std::uint64_t Workspace::hash(std::size_t shape, const Snapshot& snapshot) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < outputs_.size(); ++i) sum = mixed(sum, device_.hash(got(shape, snapshot, i)));
  return sum;
}

void Workspace::regenerate(std::size_t shape, std::uint64_t seed) const {
  for (const verify::Fill& fill : fills(shape, false)) device_.fill(fill, seed);
  for (std::size_t t = 0; t < initial_.size(); ++t) {
    if (initial_[t]) device_.copy({expected(shape, t), initial(shape, t)});
  }
}

std::vector<std::uint64_t> Workspace::head_slots(std::size_t shape) const {
  std::vector<std::uint64_t> slots;
  for (const std::string& dim : problem_.argument_dims())
    slots.push_back(static_cast<std::uint64_t>(shapes_[shape].dims.at(dim)));
  for (const Scalar& scalar : problem_.scalars) slots.push_back(slot_of(scalar));
  return slots;
}

std::vector<std::uint64_t> Workspace::private_slots(std::size_t shape) const {
  std::vector<std::uint64_t> slots = head_slots(shape);
  for (const auto& buffer : private_) slots.push_back(reinterpret_cast<std::uint64_t>(buffer->region().data));
  return slots;
}

protocol::Setup Workspace::bare_setup() const {
  protocol::Setup setup{};
  setup.magic = protocol::kMagic;
  setup.version = protocol::kVersion;
  setup.device = device_.facts().kind == "cuda" ? 1 : 0;
  setup.gpus = static_cast<std::uint32_t>(problem_.gpus);
  setup.tensor_count = static_cast<std::uint32_t>(shared_.size());
  for (std::size_t t = 0; t < shared_.size(); ++t)
    setup.tensors[t] = {shared_[t]->mapped_bytes(), shared_[t]->tensor_offset()};
  return setup;
}

namespace {

void put_shape(protocol::SetupShape& to, const std::vector<std::uint64_t>& head,
               const std::vector<std::uint64_t>& pointers) {
  if (head.size() + pointers.size() > protocol::kSlotsMax) throw GradeFault("task", "too many arguments");
  std::copy(head.begin(), head.end(), to.slots);
  std::copy(pointers.begin(), pointers.end(), to.slots + head.size());
  to.slot_count = static_cast<std::uint32_t>(head.size() + pointers.size());
  to.first_pointer = static_cast<std::uint32_t>(head.size());
}

}  // namespace

protocol::Setup Workspace::setup() const {
  protocol::Setup setup = bare_setup();
  std::vector<std::uint64_t> pointers(shared_.size());
  for (std::size_t t = 0; t < pointers.size(); ++t) pointers[t] = t;
  for (std::size_t s = 0; s < shapes_.size(); ++s) put_shape(setup.shapes[s], head_slots(s), pointers);
  setup.shape_count = static_cast<std::uint32_t>(shapes_.size());
  return setup;
}

// The layout that grade/trusted.h describes.
protocol::Setup Workspace::trusted_setup(Trusted variant, std::size_t shapes) const {
  protocol::Setup setup = bare_setup();
  for (std::size_t s = 0; s < shapes; ++s) {
    std::vector<std::uint64_t> head = {static_cast<std::uint64_t>(variant), static_cast<std::uint64_t>(problem_.gpus),
                                       outputs_.size()},
                               pointers;
    for (const std::size_t t : outputs_) {
      head.push_back(bytes(s, t));
      pointers.push_back(t);
    }
    for (const std::size_t t : outputs_) head.push_back(static_cast<std::uint64_t>(gpu_of(t)));
    put_shape(setup.shapes[s], head, pointers);
  }
  setup.shape_count = static_cast<std::uint32_t>(shapes);
  return setup;
}

std::vector<int> Workspace::descriptors() const {
  std::vector<int> fds;
  for (const auto& buffer : shared_) fds.push_back(buffer->fd());
  return fds;
}

}  // namespace kbench::grade
