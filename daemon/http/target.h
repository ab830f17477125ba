// A request target taken apart. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kbench::http {

struct Target {
  std::vector<std::string> segments;  // decoded; never empty strings, ".", "..", a slash or a control character within
  std::map<std::string, std::string> query;  // decoded
};

// Throws Problem (400). Accepts origin form and absolute form ("http://host/path").
Target decode_target(std::string_view target);

}  // namespace kbench::http
