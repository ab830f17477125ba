// A server's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "client/client.h"

namespace kbench::client {

// Throws what nlohmann::json::parse throws, and std::runtime_error for what is nested so deep that copying or writing
// it would take all of the stack.
inline nlohmann::json parsed(const std::string& text) {
  using nlohmann::json;
  constexpr int kDepthMax = 64;  // a submission's details have eight levels
  bool too_deep = false;
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    return !(too_deep = too_deep || depth > kDepthMax);
  };
  auto value = json::parse(text, shallow);
  if (too_deep) throw std::runtime_error("the server's answer is nested too deep");
  return value;
}

// As a line for a terminal or a program.
inline std::string line_of(const nlohmann::json& value) {
  return harmless_json(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace kbench::client
