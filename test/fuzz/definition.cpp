// A definition of the catalogue: its TOML, and behind "---" its header. What is accepted means the same when it is read
// again.
#include "generator/generator.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

std::string hash_of(const std::string& toml, const std::string& header, generator::Tolerances tolerances) {
  try {
    const auto definition = generator::parse("family/task", "fuzz.toml", toml, header, tolerances);
    require(definition.id() == "family/task", "the definition that was asked for");
    require(!definition.problem.tensors.empty(), "something to check");
    return definition.problem.hash;
  } catch (const generator::BadDefinition& bad) {
    require(std::string_view(bad.what()).starts_with("fuzz.toml"), "where the fault is");
    return "";
  }
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  const auto parts = sections({reinterpret_cast<const char*>(data), size});
  const std::string header = parts.size() > 1 ? parts[1] : "";
  const auto hash = hash_of(parts[0], header, generator::Tolerances::required);
  require(hash == hash_of(parts[0], header, generator::Tolerances::required), "the same meaning");
  const auto unmeasured = hash_of(parts[0], header, generator::Tolerances::to_be_measured);
  require(hash.empty() || !unmeasured.empty(), "what is whole can be measured again");
  return 0;
}
