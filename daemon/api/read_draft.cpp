// The two forms a submission comes in.
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "daemon/api/input.h"

namespace kbench::api {
namespace {

using nlohmann::json;
constexpr int kDepthMax = 4;  // a submission has two levels

[[noreturn]] void malformed(const std::string& title, const std::string& fix) {
  throw http::Problem{400, "malformed-json", title, fix, "body"};
}

// The library keeps the last of two equal names without a word; two files of one name must not become one.
// And a value takes many times the memory of its text: as many are read as are needed to name what is too much.
json parsed(const std::string& body, const Limits& limits) {
  const std::size_t values_max = 2 * (limits.files_max + limits.labels_max) + 64;
  std::size_t values = 0;
  if (!http::valid_utf8(body))
    malformed("the body is not UTF-8", "Send sources in UTF-8; a file that is none cannot be submitted.");
  std::vector<std::set<std::string>> names;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (event != json::parse_event_t::key && ++values > values_max)
      throw http::Problem{413, "too-large", "more values than a submission has", "See docs/api.md for its form.",
                          "body"};
    if (depth > kDepthMax) malformed("JSON nested too deep", "See docs/api.md for a submission's form.");
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second) {
      malformed("\"" + value.get<std::string>() + "\" given twice in one object", "Give each name once.");
    }
    return true;
  };
  try {
    return json::parse(body, check);
  } catch (const json::parse_error& e) {
    malformed("malformed JSON at byte " + std::to_string(e.byte), "Send one JSON object; see docs/api.md.");
  } catch (const json::out_of_range&) {
    malformed("a number that is too large", "Send numbers that a double can hold.");
  }
}

// What does not fit 64 bits would come out as another number.
std::optional<std::int64_t> whole(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return value.get<std::int64_t>();
}

std::map<std::string, std::string> texts_of(const json& value, const std::string& field, Faults& faults) {
  std::map<std::string, std::string> out;
  if (!value.is_object()) {
    faults.add(field, field + " is not an object", "Send {\"name\": \"text\", …}.");
    return out;
  }
  for (const auto& [name, text] : value.items()) {
    if (text.is_string()) {
      out[name] = text.get<std::string>();
    } else {
      faults.add(field + "[\"" + name + "\"]", "not a string", "Send it as a JSON string.");
    }
  }
  return out;
}

Draft draft_from_json(const std::string& body, const Limits& limits) {
  const auto given = parsed(body, limits);
  if (!given.is_object()) malformed("the body is not a JSON object", "See docs/api.md for a submission's form.");
  Draft draft;
  Faults faults;
  const std::map<std::string, std::string*> texts = {
      {"task", &draft.task}, {"device", &draft.device}, {"language", &draft.language}, {"gpu_model", &draft.gpu_model}};
  for (const auto& [name, value] : given.items()) {
    const auto text = texts.find(name);
    if (text != texts.end() && value.is_string()) {
      *text->second = value.get<std::string>();
    } else if (text != texts.end()) {
      faults.add(name, name + " is not a string", "Send it as a JSON string.");
    } else if (const auto number = name == "priority" ? whole(value) : std::nullopt) {
      draft.priority = *number;
    } else if (name == "priority") {
      faults.add(name, "priority is not a whole number", "Send it as a JSON number.");
    } else if (name == "labels") {
      draft.labels = texts_of(value, name, faults);
    } else if (name == "files") {
      for (auto& [path, content] : texts_of(value, name, faults)) draft.files.push_back({path, content});
    } else {
      faults.add(name, "unknown field " + name,
                 "Fields are task, device, language, files, labels, priority, gpu_model.");
    }
  }
  faults.throw_any();
  return draft;
}

void read_label(Draft& draft, const std::string& text, Faults& faults) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) {
    faults.add("label", "a label without =", "Send name=value.");
  } else if (!draft.labels.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
    faults.add("labels[\"" + text.substr(0, equals) + "\"]", "label given twice", "Give it once.");
  }
}

Draft draft_from_form(const http::Request& request, const Limits& limits) {
  constexpr std::size_t kPlainParts = 5;
  const auto parts = http::parse_multipart(request.header("Content-Type"), request.body,
                                           limits.files_max + limits.labels_max + kPlainParts);
  Draft draft;
  Faults faults;
  const std::map<std::string, std::string*> texts = {
      {"task", &draft.task}, {"device", &draft.device}, {"language", &draft.language}, {"gpu_model", &draft.gpu_model}};
  std::set<std::string> seen;
  for (const auto& part : parts) {
    if (part.name != "label" && part.name != "file" && !seen.insert(part.name).second) {
      faults.add(part.name, part.name + " given twice", "Give it once.");
    } else if (const auto text = texts.find(part.name); text != texts.end()) {
      *text->second = part.content;
    } else if (part.name == "priority") {
      const auto number = whole_number(part.content);
      if (!number) faults.add("priority", "priority is not a whole number", "Send digits.");
      draft.priority = number.value_or(0);
    } else if (part.name == "label") {
      read_label(draft, part.content, faults);
    } else if (part.name == "file" && part.filename.empty()) {
      faults.add("file", "a file without a name", "Send filename=\"…\" with it (curl: -F file=@solution.cpp).");
    } else if (part.name == "file") {
      draft.files.push_back({part.filename, part.content});
    } else {
      faults.add(part.name, "unknown field " + part.name,
                 "Parts are task, device, language, priority, gpu_model, label (name=value), file.");
    }
  }
  faults.throw_any();
  return draft;
}

}  // namespace

void Faults::throw_any() const {
  if (all_.empty()) return;
  const auto& first = all_.front();
  const bool size_only = too_large_ == all_.size();
  throw http::Problem{size_only ? 413 : 422,
                      size_only ? "too-large" : "bad-submission",
                      first.title,
                      first.detail,
                      first.field,
                      0,
                      all_};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, value);
  if (error != std::errc() || end != text_end) return std::nullopt;
  return value;
}

Draft read_draft(const http::Request& request, const Limits& limits) {
  const std::string given(request.header("Content-Type"));
  std::string type = given.substr(0, given.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  for (auto& c : type) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (type == "application/json") return draft_from_json(request.body, limits);
  if (type == "multipart/form-data") return draft_from_form(request, limits);
  throw http::Problem{415, "bad-content-type", "neither JSON nor a form with files",
                      "Send Content-Type: application/json or multipart/form-data (curl: --json or -F).",
                      "Content-Type"};
}

}  // namespace kbench::api
