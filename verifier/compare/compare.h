// Comparison rules: does an output match its reference, element by element, all of them?
//
// A rule is a few device passes over (got, expected) and a decision on the sums they return. The passes are single
// source (compare/passes.h), the decision is plain host code, so a rule is tested without a device.
// Rules: exact, near, elem, abs, tight, codes, rows, delta, finite; their forms are in docs/generators-and-rules.md.
// A NaN or infinity where the reference has none fails every rule.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "verifier/problem/problem.h"

namespace kbench::verify {
class Device;
struct Region;
}  // namespace kbench::verify

namespace kbench::compare {

struct Outcome {
  bool equal = false;
  std::string reason;       // for a submitter: "y: 3 of 4096 elements differ; first at [0,17]: got 1.5, expected 1.25"
  std::int64_t wrong = 0;   // elements outside the rule
  std::int64_t first = -1;  // flat index of the first of them
  double max_error = 0;     // in the rule's units: 1 is the edge of the tolerance
  double rms_error = 0;     // likewise
};

struct BadRule : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Rule {
 public:
  virtual ~Rule() = default;
  // got and expected are regions of the device's memory; `initial` is an in-out tensor's content before the call, else
  // empty.
  virtual Outcome judge(verify::Device& device, const Tensor& tensor, const Dims& dims, const verify::Region& got,
                        const verify::Region& expected, const verify::Region& initial) const = 0;
};

std::unique_ptr<Rule> parse(const Tensor& tensor);  // throws BadRule: names the text and what is admitted

}  // namespace kbench::compare
