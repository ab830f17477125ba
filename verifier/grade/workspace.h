// Inside grade/: every buffer of a grading and what each call does with them. Made once, before any worker exists.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "verifier/device/device.h"
#include "verifier/inputs/inputs.h"
#include "verifier/measure/measure.h"
#include "verifier/problem/problem.h"
#include "verifier/protocol/protocol.h"

namespace kbench::grade {

// Private memory for one set of outputs, of any shape up to the size it was made for.
struct Snapshot {
  std::vector<std::unique_ptr<verify::Buffer>> memory;  // one a GPU
};

enum class Trusted : std::uint8_t { empty = 0, writing = 1 };  // the calibrating worker's variants; see grade/trusted.h

class Workspace {
 public:
  // `problem` is spread over its GPUs and outlives it. One shared and one private buffer a tensor, large enough for
  // every shape; in-out tensors have a second private one for their content before the call. Throws
  // GradeFault("memory") when they do not fit, GradeFault("task") for generators that do not compile.
  Workspace(verify::Device& device, const Problem& problem, std::vector<Shape> shapes);

  const std::vector<Shape>& shapes() const { return shapes_; }
  // Indexes of what a call leaves: outputs and in-out tensors.
  const std::vector<std::size_t>& outputs() const { return outputs_; }
  std::uint64_t output_bytes(std::size_t shape) const;  // of one snapshot, on all GPUs
  Snapshot make_snapshot(std::size_t shape) const;

  // The plan of one call. Without a snapshot nothing is kept (prepare).
  verify::RepetitionPlan plan(std::size_t shape, const measure::Keys& keys, const Snapshot* snapshot) const;
  // Bytes outside the tensors that a call must have left alone but has not.
  std::int64_t strayed(std::size_t shape, std::uint64_t poison) const;
  std::uint64_t live_hash(std::size_t shape) const;  // of what lies in the worker's output buffers now
  std::uint64_t hash(std::size_t shape, const Snapshot& snapshot) const;

  // Private inputs, made by seed; in-out tensors' initial content too.
  void regenerate(std::size_t shape, std::uint64_t seed) const;
  std::vector<std::uint64_t> private_slots(std::size_t shape) const;  // kbench_args over the private buffers
  verify::Region got(std::size_t shape, const Snapshot& snapshot,
                     std::size_t output) const;  // output: index into outputs()
  verify::Region expected(std::size_t shape, std::size_t tensor) const;
  verify::Region initial(std::size_t shape, std::size_t tensor) const;  // empty but for in-out tensors

  protocol::Setup setup() const;
  protocol::Setup trusted_setup(Trusted variant, std::size_t shapes) const;  // of the first so many shapes
  std::vector<int> descriptors() const;

 private:
  std::uint64_t bytes(std::size_t shape, std::size_t tensor) const;
  int gpu_of(std::size_t tensor) const { return problem_.tensors[tensor].gpu; }
  verify::Region shared(std::size_t shape, std::size_t tensor) const;
  verify::Region edge(std::size_t shape, std::size_t tensor) const;
  std::vector<verify::Fill> fills(std::size_t shape, bool to_shared) const;
  std::vector<verify::Region> guards(std::size_t shape) const;
  std::vector<std::uint64_t> head_slots(std::size_t shape) const;  // dims and scalars
  protocol::Setup bare_setup() const;

  verify::Device& device_;
  const Problem& problem_;
  std::vector<Shape> shapes_;
  std::vector<std::size_t> outputs_;
  std::vector<std::size_t> order_;                       // in which inputs are made
  std::vector<std::vector<inputs::Compiled>> programs_;  // [shape][position in order_]
  std::vector<std::unique_ptr<verify::SharedBuffer>> shared_;
  std::vector<std::unique_ptr<verify::Buffer>> private_, initial_;  // initial_: null but for in-out tensors
};

// Behind a tensor that is smaller than its buffer, this much is guarded as the bands at the buffer's ends are.
inline constexpr std::uint64_t kEdgeGuardBytes = 64 * 1024;

}  // namespace kbench::grade
