// The table of all options. Not for other folders.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/config/config.h"

namespace kbench::config {

struct List {
  std::vector<std::string> texts;
};
using Value = std::variant<bool, std::int64_t, double, std::string, List>;  // as the TOML file has it

struct Option {
  std::string key;      // "section.name"
  std::string expects;  // "a port (1..65535)": completes "is not"
  std::string doc;
  // False when the value is not what the option expects.
  std::function<bool(Config&, const Value&)> set;
  std::function<std::string(const Config&)> show;  // as TOML
};

struct Section {
  std::string name, doc;
};

const std::vector<Section>& sections();
const std::vector<Option>& options();  // in the order of the sections

void complete(Config& config);  // paths that were not given get their place in the data folder
// What each option accepts but all together do not.
std::vector<std::string> contradictions(const Config& config);

std::string quoted(const std::string& text);  // a TOML string

}  // namespace kbench::config
