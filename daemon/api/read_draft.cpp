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

[[noreturn]] void malformed(const std::string& title, const std::string& fix, const std::string& field = "body") {
  throw http::Problem{400, "malformed-json", title, fix, field};
}

// Where in the document a parser is: `files["a.cpp"]`, as fields are named everywhere; "body" at the top.
class Place {
 public:
  void take(json::parse_event_t event, const json& value) {
    using Event = json::parse_event_t;
    const bool ends = event == Event::object_end || event == Event::array_end;
    if (event == Event::key) {
      frames_.back().name = value.get<std::string>();
    } else if (ends) {
      frames_.pop_back();
    }
    if (event == Event::object_start || event == Event::array_start) {
      frames_.push_back({event == Event::array_start, {}, 0, {}});
    } else if (event != Event::key && !frames_.empty()) {  // a value is whole
      frames_.back().name.reset();
      ++frames_.back().index;
    }
  }
  // Whether the object that the parser is in has had its last key before.
  bool repeats() { return !frames_.back().known.insert(*frames_.back().name).second; }
  bool in_name() const { return !frames_.empty() && !frames_.back().is_array && !frames_.back().name; }
  std::string text() const {
    std::string out;
    if (!frames_.empty() && frames_.front().is_array) return "body";
    for (const Frame& frame : frames_) {
      if (frame.is_array) {
        out.append("[").append(std::to_string(frame.index)).append("]");
      } else if (frame.name && out.empty()) {
        out = frame.name->substr(0, kShownBytes);
      } else if (frame.name) {
        out.append("[\"").append(frame.name->substr(0, kShownBytes)).append("\"]");
      }
    }
    return out.empty() ? "body" : out;
  }

 private:
  static constexpr std::size_t kShownBytes = 200;
  struct Frame {
    bool is_array;
    std::optional<std::string> name;  // whose value is being read
    std::size_t index;
    std::set<std::string> known;
  };
  std::vector<Frame> frames_;
};

// The library keeps the last of two equal names without a word; two files of one name must not become one.
// And a value takes many times the memory of its text: as many are read as are needed to name what is too much.
json parsed(const std::string& body, const Limits& limits) {
  const std::size_t values_max = 2 * (limits.files_max + limits.labels_max) + 64;
  std::size_t values = 0;
  if (body.empty()) malformed("the body is empty", "Send one JSON object; see docs/api.md.");
  Place place;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (event != json::parse_event_t::key && ++values > values_max)
      throw http::Problem{413, "too-large", "more values than a submission has",
                          "Send at most " + limit_text(limits.files_max, "files", "files_max") + " and " +
                              limit_text(limits.labels_max, "labels", "labels_max") + ".",
                          "body"};
    if (depth > kDepthMax) malformed("JSON nested too deep", "See docs/api.md for a submission's form.", place.text());
    place.take(event, value);
    if (event == json::parse_event_t::key && place.repeats())
      malformed(place.text() + " given twice", "Give each name once in an object.", place.text());
    return true;
  };
  try {
    return json::parse(body, check);
  } catch (const json::parse_error& e) {
    const auto where = place.text();
    const auto bad = http::utf8_prefix(body);  // its first byte that is none
    if (bad < body.size() && e.byte > bad)
      malformed(place.in_name() ? "a name in " + where + " is not UTF-8" : where + " is not UTF-8",
                "Send JSON and the sources in it as UTF-8; a file that is none cannot be submitted.", where);
    malformed("malformed JSON at byte " + std::to_string(e.byte) + (where == "body" ? "" : ", in " + where),
              "Send one JSON object; see docs/api.md.");
  } catch (const json::out_of_range&) {
    malformed("a number that is too large", "Send numbers that a double can hold.", place.text());
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

// One of the fields that are a text. Empty is what a client's unset variable looks like: taken for none, the submission
// would go to another device, or GPU, than was meant. A task that is missing is said later.
void take_text(std::string& into, const std::string& name, const std::string& text, Faults& faults) {
  if (text.empty() && name != "task") faults.add(name, name + " is empty", "Give it a value, or leave it out.");
  into = text;
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
      take_text(*text->second, name, value.get<std::string>(), faults);
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
                                           limits.files_max + limits.labels_max + kPlainParts,
                                           "submissions.files_max, labels_max and the other fields");
  Draft draft;
  Faults faults;
  const std::map<std::string, std::string*> texts = {
      {"task", &draft.task}, {"device", &draft.device}, {"language", &draft.language}, {"gpu_model", &draft.gpu_model}};
  std::set<std::string> seen;
  for (const auto& part : parts) {
    if (part.name != "label" && part.name != "file" && !seen.insert(part.name).second) {
      faults.add(part.name, part.name + " given twice", "Give it once.");
    } else if (const auto text = texts.find(part.name); text != texts.end()) {
      take_text(*text->second, part.name, part.content, faults);
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

std::string limit_text(std::size_t value, std::string_view unit, std::string_view option) {
  return http::limit_text(static_cast<std::int64_t>(value), unit, std::string("submissions.").append(option));
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
