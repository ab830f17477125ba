// What people read.
#include <array>
#include <cstdio>

#include "client/client.h"
#include "client/json.h"

namespace kbench::client {
namespace {

using nlohmann::json;

std::string text_in(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::string of(const json& data, const char* name, const char* total) {
  if (!data.contains(name) || !data[name].is_number_integer()) return "";
  auto out = std::string(name) + " " + std::to_string(data[name].get<std::int64_t>());
  if (data.contains(total) && data[total].is_number_integer())
    out += " of " + std::to_string(data[total].get<std::int64_t>());
  return out;
}

}  // namespace

std::string rounded(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.4g", value);
  return out.data();
}

namespace {

// `escaped` writes a control character, of one byte or two.
template <class Escaped>
std::string without_controls(std::string_view text, const Escaped& escaped) {
  std::string out;
  const auto byte_at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = byte_at(i);
    if (byte == 0xc2 && byte_at(i + 1) >= 0x80 && byte_at(i + 1) < 0xa0) {  // controls beyond ASCII: U+009B is ESC [
      escaped(out, text.substr(i++, 2));
    } else if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t') {
      out += text[i];
    } else {
      escaped(out, text.substr(i, 1));
    }
  }
  return out;
}

void add_hex(std::string& out, const char* before, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out.append(before).append(1, "0123456789abcdef"[byte >> 4]).append(1, "0123456789abcdef"[byte & 15]);
}

}  // namespace

std::string harmless(std::string_view text) {
  return without_controls(text, [](std::string& out, std::string_view control) {
    for (const char c : control) add_hex(out, "\\x", c);
  });
}

std::string harmless_json(std::string_view json) {
  return without_controls(json, [](std::string& out, std::string_view control) {
    if (control == "\r") return;  // white space between values, else it is no JSON
    add_hex(out, "\\u00", control.back());
  });
}

void Progress::take(const Event& event) {
  const auto whole = json::parse(event.data, nullptr, false);
  if (!whole.is_object() || !whole.contains("data") || !whole["data"].is_object()) return;
  const auto& data = whole["data"];
  if (whole.contains("attempt") && whole["attempt"].is_number_integer()) attempt_ = whole["attempt"].get<int>();
  if (event.type == "state") {
    phase_ = text_in(data, "state");
    detail_.clear();
    if (const auto cause = text_in(data, "cause"); !cause.empty()) detail_ = "again: " + cause;
  } else if (event.type == "phase") {
    detail_ = text_in(data, "phase");
  } else if (event.type == "progress") {
    detail_ = of(data, "run", "runs");
    if (const auto more = of(data, "repetition", "repetitions"); !more.empty())
      detail_ += (detail_.empty() ? "" : "  ") + more;
  } else if (event.type == "run") {
    detail_ = of(data, "run", "runs") + " done";
  } else if (event.type == "result") {
    ended_ = true;
  }
}

std::string Progress::line() const {
  std::string out = phase_;
  if (attempt_ > 1) out += " (attempt " + std::to_string(attempt_) + ")";
  if (!detail_.empty()) out += "  " + detail_;
  return harmless(out);
}

std::string verdict_line(const std::string& submission_json) {
  const auto s = parsed(submission_json);
  const auto verdict = text_in(s, "verdict");
  std::string out = verdict.empty() ? text_in(s, "state") : verdict;
  if (s.contains("reward") && s["reward"].is_number()) {
    out += "  " + rounded(s["reward"].get<double>()) + " " + text_in(s, "metric");
    if (s.contains("interval") && s["interval"].is_array() && s["interval"].size() == 2) {
      out += "  [" + rounded(s["interval"][0].get<double>()) + ", " + rounded(s["interval"][1].get<double>()) + "]";
    }
  }
  if (const auto reason = text_in(s, "reason"); !reason.empty()) out += "\n  " + reason;
  return harmless(out);
}

std::string described(const std::string& submission_json) {
  const auto s = parsed(submission_json);
  std::string out;
  const auto row = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    out.append(name)
        .append(std::string(12 - std::min<std::size_t>(11, std::string(name).size()), ' '))
        .append(value)
        .append("\n");
  };
  row("id", text_in(s, "id"));
  row("task", text_in(s, "task"));
  row("device", text_in(s, "device") + (text_in(s, "gpu_model").empty() ? "" : " (" + text_in(s, "gpu_model") + ")"));
  row("language", text_in(s, "language"));
  auto state = text_in(s, "state");
  if (s.value("cancel_requested", false) && state != "cancelled") state += ", cancel requested";
  if (s.value("attempt", 0) > 1) state += ", attempt " + std::to_string(s["attempt"].get<int>());
  row("state", state);
  if (!text_in(s, "verdict").empty()) row("verdict", verdict_line(submission_json));
  if (s.contains("rank") && s["rank"].is_object() && !text_in(s, "verdict").empty()) {
    const auto reason = text_in(s["rank"], "reason");
    row("ranked",
        std::string(s["rank"].value("eligible", false) ? "yes" : "no") + (reason.empty() ? "" : ": " + reason));
  }
  const auto labels = s.value("labels", json::object());
  for (const auto& [name, value] : labels.items())
    row("label", name + "=" + (value.is_string() ? value.get<std::string>() : ""));
  row("created", text_in(s, "created"));
  row("finished", text_in(s, "finished"));
  return harmless(out);
}

int exit_code_of(const std::string& submission_json) {
  const auto s = parsed(submission_json);
  const auto state = text_in(s, "state"), verdict = text_in(s, "verdict");
  if (state == "cancelled") return kCancelled;
  if (state == "failed" || verdict == "infra_error") return kInfra;
  if (state == "done") return verdict == "correct" ? kOk : kNotCorrect;
  return kOk;  // under way: status itself has succeeded
}

}  // namespace kbench::client
