#include "verifier/problem/json_object.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "verifier/problem/problem.h"

namespace kbench {

Object::Object(const json& value, std::string path, Faults& faults) : path_(std::move(path)), faults_(faults) {
  if (value.is_object()) {
    value_ = &value;
  } else {
    note("", "must be an object");
  }
}

std::string Object::path(std::string_view key) const {
  return path_ + (path_.empty() || key.empty() ? "" : ".") + std::string(key);
}

void Object::note(std::string_view key, const std::string& what) const { faults_.push_back(path(key) + ": " + what); }

const Object::json* Object::get(std::string_view key, bool needed) {
  known_.insert(std::string(key));
  if (value_ == nullptr) return nullptr;
  const auto found = value_->find(std::string(key));
  if (found != value_->end()) return &*found;
  if (needed) note(key, "is missing");
  return nullptr;
}

std::string Object::text(std::string_view key, bool needed) {
  const json* value = get(key, needed);
  if (value == nullptr) return {};
  if (!value->is_string()) return note(key, "must be a string"), std::string();
  const auto& string = value->get_ref<const std::string&>();
  if (string.size() > kTextMax) return note(key, "is longer than " + std::to_string(kTextMax)), std::string();
  return string;
}

double Object::number(std::string_view key, double otherwise, bool needed) {
  const json* value = get(key, needed);
  if (value == nullptr) return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  note(key, "must be a finite number");
  return otherwise;
}

std::vector<Object::json> Object::array(std::string_view key, std::size_t most, bool needed) {
  const json* value = get(key, needed);
  if (value == nullptr) return {};
  if (!value->is_array()) return note(key, "must be an array"), std::vector<json>();
  if (value->size() > most) return note(key, "has more than " + std::to_string(most) + " entries"), std::vector<json>();
  return {value->begin(), value->end()};
}

std::vector<std::string> Object::texts(std::string_view key, std::size_t most, bool needed) {
  std::vector<std::string> result;
  for (const json& value : array(key, most, needed)) {
    if (!value.is_string()) return note(key, "must hold strings"), std::vector<std::string>();
    result.push_back(value);
  }
  return result;
}

void Object::refuse_unknown_keys() const {
  if (value_ == nullptr) return;
  for (const auto& [key, value] : value_->items()) {
    if (!known_.contains(key)) note(key, "unknown key");
  }
}

}  // namespace kbench
