#include "generator/toml_reader.h"

#include <algorithm>
#include <cmath>

namespace kbench::generator {

void TomlReader::fault(const std::string& key, const std::string& reason, const toml::node* at) {
  std::string line = file_;
  if (at != nullptr && at->source().begin.line > 0) line += ":" + std::to_string(at->source().begin.line);
  faults_.push_back(line + ": " + key + ": " + reason);
}

void TomlReader::only(const toml::table& table, const std::string& prefix, std::initializer_list<const char*> known) {
  for (const auto& [key, node] : table) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    std::string all;
    for (const char* name : known) all += all.empty() ? name : std::string(", ") + name;
    fault(prefix + std::string(key.str()), "unknown key; known here: " + all, &node);
  }
}

const toml::node* TomlReader::get(const toml::table& table, const std::string& prefix, const char* key, bool required) {
  const toml::node* node = table.get(key);
  if (node == nullptr && required) fault(prefix + key, "missing", &table);
  return node;
}

std::string TomlReader::text(const toml::table& table, const std::string& prefix, const char* key, bool required) {
  const toml::node* node = get(table, prefix, key, required);
  if (node == nullptr) return {};
  if (const auto value = node->value_exact<std::string>()) {
    if (required && value->find_first_not_of(" \n\t") == std::string::npos) fault(prefix + key, "empty", node);
    return *value;
  }
  fault(prefix + key, "must be a string", node);
  return {};
}

std::vector<std::string> TomlReader::texts(const toml::table& table, const std::string& prefix, const char* key,
                                           bool required) {
  const toml::node* node = get(table, prefix, key, required);
  std::vector<std::string> values;
  if (node == nullptr) return values;
  const toml::array* array = node->as_array();
  if (array == nullptr) fault(prefix + key, "must be an array of strings", node);
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (const auto value = array->get(i)->value_exact<std::string>())
      values.push_back(*value);
    else
      fault(prefix + key + "[" + std::to_string(i) + "]", "must be a string", array->get(i));
  }
  return values;
}

double TomlReader::number(const toml::table& table, const std::string& prefix, const char* key, double otherwise,
                          bool required) {
  const toml::node* node = get(table, prefix, key, required);
  if (node == nullptr) return otherwise;
  const auto value = node->value<double>();
  if (node->is_number() && value && std::isfinite(*value)) return *value;
  fault(prefix + key, "must be a finite number", node);
  return otherwise;
}

std::int64_t TomlReader::integer(const toml::node& node, const std::string& key) {
  if (const auto value = node.value_exact<std::int64_t>()) return *value;
  fault(key, "must be an integer", &node);
  return 0;
}

const toml::table* TomlReader::table(const toml::table& table, const std::string& prefix, const char* key,
                                     bool required) {
  const toml::node* node = get(table, prefix, key, required);
  if (node != nullptr && !node->is_table()) fault(prefix + key, "must be a table", node);
  return node == nullptr ? nullptr : node->as_table();
}

std::vector<const toml::table*> TomlReader::tables(const toml::table& table, const std::string& prefix, const char* key,
                                                   bool required) {
  const toml::node* node = get(table, prefix, key, required);
  std::vector<const toml::table*> values;
  if (node == nullptr) return values;
  const toml::array* array = node->as_array();
  if (array == nullptr) fault(prefix + key, "must be an array of tables", node);
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (const toml::table* value = array->get(i)->as_table())
      values.push_back(value);
    else
      fault(prefix + key + "[" + std::to_string(i) + "]", "must be a table", array->get(i));
  }
  return values;
}

}  // namespace kbench::generator
