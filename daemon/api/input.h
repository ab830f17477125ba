// What a submitter sent, to a submission that may be stored. Pure: reads no store, keeps nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/api.h"

namespace kbench::api {

// As it was sent; nothing is checked but the form. Fields that were not sent are empty.
struct Draft {
  std::string task, device, language, gpu_model;
  std::int64_t priority = 0;
  std::map<std::string, std::string> labels;
  std::vector<store::File> files;
};

// Collects faults, so that a submitter learns of all at once.
class Faults {
 public:
  void add(std::string field, std::string title, std::string fix) {
    all_.push_back({std::move(field), std::move(title), std::move(fix)});
  }
  void add_too_large(std::string field, std::string title, std::string fix) {
    add(std::move(field), std::move(title), std::move(fix));
    ++too_large_;
  }
  // 413 if all are about size, else 422; the first gives title, detail and field.
  void throw_any() const;

 private:
  std::vector<http::Fault> all_;
  std::size_t too_large_ = 0;
};

// "4 files (submissions.files_max)": a limit of this section as a refusal names it.
std::string limit_text(std::size_t value, std::string_view unit, std::string_view option);

// The whole text as a decimal number: digits, and a minus before them.
std::optional<std::int64_t> whole_number(std::string_view text);

// By Content-Type: JSON or multipart/form-data; 415 for any other. Throws http::Problem.
Draft read_draft(const http::Request& request, const Limits& limits);

// Checks everything, fills in what may be left out (device, language), hashes. Throws http::Problem with all faults.
store::NewSubmission checked(const Draft& draft, const std::vector<Task>& tasks, const std::vector<SlotStatus>& slots,
                             const Limits& limits);

// By id, or by its name alone where one family has it. Null: `fix` says what was perhaps meant.
const Task* find_task(const std::vector<Task>& tasks, const std::string& id, std::string& fix);

}  // namespace kbench::api
