// kbenchd.toml. What is accepted is written and read back as the same.
#include "daemon/config/config.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

KBENCH_FUZZ_TARGET(data, size) {
  std::string text;
  try {
    text = config::effective(config::parse({reinterpret_cast<const char*>(data), size}, "fuzz.toml"));
  } catch (const config::BadConfig& bad) {
    require(!bad.errors.empty(), "a reason");
    return 0;
  }
  require(config::effective(config::parse(text, "effective.toml")) == text, "the same configuration");
  return 0;
}
