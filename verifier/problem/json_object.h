// Reading one JSON object so that every fault is noted and none stops the reading. Inner header of problem/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

// The words of task.json, in the order of their enums.
inline constexpr std::string_view kMetricNames[] = {"TFLOP/s", "GB/s"};
inline constexpr std::string_view kRoleNames[] = {"input", "output", "inout"};
inline constexpr std::string_view kPlacementNames[] = {"one", "shard", "replicated"};  // the first is not written
inline constexpr std::string_view kScalarNames[] = {"f32", "f64", "i64"};

using Faults = std::vector<std::string>;  // "tensors[2].shape: unknown name 'Q'"

// Every getter notes what is wrong and goes on with a default. Refers to the JSON value and the faults; outlives
// neither.
class Object {
 public:
  using json = nlohmann::json;
  Object(const json& value, std::string path, Faults& faults);

  void note(std::string_view key, const std::string& what) const;
  std::string path(std::string_view key) const;
  Faults& faults() const { return faults_; }

  const json* get(std::string_view key, bool needed = true);  // null where absent
  std::string text(std::string_view key, bool needed = true);
  double number(std::string_view key, double otherwise, bool needed);
  std::vector<json> array(std::string_view key, std::size_t most, bool needed = true);
  std::vector<std::string> texts(std::string_view key, std::size_t most, bool needed = true);
  void refuse_unknown_keys() const;  // those that no getter has asked for

 private:
  const json* value_ = nullptr;
  std::string path_;
  Faults& faults_;
  std::set<std::string> known_;
};

}  // namespace kbench
