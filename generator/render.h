// The texts that go into the templates.
#pragma once

#include <map>
#include <string>

#include "generator/generator.h"

namespace kbench::generator {

// "{{name}}" in `text` becomes fields.at("name"). Throws std::runtime_error naming `file` for a name without a value.
std::string fill(const std::string& file, const std::string& text, const std::map<std::string, std::string>& fields);

std::string join(const std::vector<std::string>& parts, const std::string& between);
std::string c_type(DType dtype);  // element type in task.h
const char* c_type(ScalarType type);
std::string number_text(double value);  // shortest text that reads back to the same double
void add_instruction_fields(const Definition& definition, std::map<std::string, std::string>& fields);

}  // namespace kbench::generator
