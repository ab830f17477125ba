// Reads values out of a TOML table and collects what is wrong with them: file, line, key, reason.
#pragma once

#include "toml/toml.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace kbench::generator {

class TomlReader {
 public:
  explicit TomlReader(std::string file) : file_(std::move(file)) {}

  void fault(const std::string& key, const std::string& reason, const toml::node* at = nullptr);
  const std::vector<std::string>& faults() const { return faults_; }

  // `prefix` is the table's own key with a dot behind it, or empty.
  void only(const toml::table& table, const std::string& prefix, std::initializer_list<const char*> known);
  std::string text(const toml::table& table, const std::string& prefix, const char* key, bool required = true);
  std::vector<std::string> texts(const toml::table& table, const std::string& prefix, const char* key,
                                 bool required = true);
  double number(const toml::table& table, const std::string& prefix, const char* key, double otherwise, bool required);
  std::int64_t integer(const toml::node& node, const std::string& key);
  const toml::table* table(const toml::table& table, const std::string& prefix, const char* key, bool required);
  // Each element must be a table; others are faults and left out.
  std::vector<const toml::table*> tables(const toml::table& table, const std::string& prefix, const char* key,
                                         bool required);

 private:
  const toml::node* get(const toml::table& table, const std::string& prefix, const char* key, bool required);

  std::string file_;
  std::vector<std::string> faults_;
};

}  // namespace kbench::generator
