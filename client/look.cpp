// status, list, log, details, cancel, tasks, gpus: one question, one answer.
#include <cstdio>
#include <set>

#include "client/commands.h"
#include "client/json.h"

namespace kbench::client {
namespace {

using nlohmann::json;

std::string path_of(const std::string& id) { return "/api/v1/submissions/" + encoded(id); }

void print_json(const json& value) { std::printf("%s\n", line_of(value).c_str()); }
void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string text_in(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return "";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

std::string reward_in(const json& submission) {
  const auto it = submission.find("reward");
  if (it == submission.end() || !it->is_number()) return "";
  return rounded(it->get<double>()) + " " + text_in(submission, "metric");
}

// Columns as wide as their widest cell.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    out += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return harmless(out);
}

std::string joined(const json& list) {
  std::string out;
  for (const auto& each : list)
    out += (out.empty() ? "" : ",") + (each.is_string() ? each.get<std::string>() : each.dump());
  return out;
}

}  // namespace

int status(Api& api, const std::string& id, bool as_json) {
  const auto reply = api.ask("GET", path_of(id));
  if (as_json) {
    print_json(parsed(reply.body));
  } else {
    print(described(reply.body));
  }
  return exit_code_of(reply.body);
}

int list(Api& api, const Listing& given, bool as_json) {
  std::string query = "?limit=" + std::to_string(given.limit);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query += std::string("&") + name + "=" + encoded(value);
  };
  add("task", given.task);
  add("state", given.state);
  add("verdict", given.verdict);
  add("device", given.device);
  add("label", given.label);
  std::vector<std::vector<std::string>> rows{{"ID", "TASK", "DEVICE", "STATE", "VERDICT", "REWARD", "CREATED"}};
  const auto is_full = [&] { return rows.size() > static_cast<std::size_t>(given.limit); };
  std::string cursor;
  std::set<std::string> seen;
  do {
    const auto page = parsed(
        api.ask("GET", "/api/v1/submissions" + query + (cursor.empty() ? "" : "&cursor=" + encoded(cursor))).body);
    for (const auto& s : page.at("submissions")) {
      if (!given.all && is_full()) break;
      if (as_json) print_json(s);
      rows.push_back({text_in(s, "id"), text_in(s, "task"), text_in(s, "device"), text_in(s, "state"),
                      text_in(s, "verdict"), reward_in(s), text_in(s, "created")});
    }
    const auto next = given.all || !is_full() ? text_in(page, "next") : "";  // pages may be short before the end
    if (!next.empty() && !seen.insert(next).second) throw std::runtime_error("the server's list goes in a circle");
    cursor = next;
  } while (!cursor.empty());
  if (!as_json) print(table(rows));
  return kOk;
}

int log(Api& api, const std::string& id, bool as_json) {
  const auto reply = api.ask("GET", path_of(id) + "/log");
  if (as_json) {
    print_json(json{{"log", reply.body}});
  } else {
    print(harmless(reply.body));
  }
  return kOk;
}

int details(Api& api, const std::string& id) {
  print_json(parsed(api.ask("GET", path_of(id) + "/details").body));
  return kOk;
}

int cancel(Api& api, const std::string& id, bool as_json) {
  const auto reply = api.ask("DELETE", path_of(id));
  if (as_json) {
    print_json(parsed(reply.body));
  } else {
    print(reply.status == 202 ? "cancel requested\n" : "cancelled\n");
  }
  return kOk;
}

int tasks(Api& api, const std::string& id, bool as_json) {
  if (!id.empty()) {
    const auto slash = id.find('/');
    const auto path =
        slash == std::string::npos ? encoded(id) : encoded(id.substr(0, slash)) + "/" + encoded(id.substr(slash + 1));
    const auto task = parsed(api.ask("GET", "/api/v1/tasks/" + path).body);
    if (as_json) {
      print_json(task);
    } else {
      print(harmless(text_in(task, "instruction")) + "\n");
    }
    return kOk;
  }
  const auto all = parsed(api.ask("GET", "/api/v1/tasks").body).at("tasks");
  if (as_json) print_json(all);
  std::vector<std::vector<std::string>> rows{{"TASK", "GPUS", "METRIC", "DEVICES", "LANGUAGES", "TITLE"}};
  for (const auto& t : all) {
    rows.push_back({text_in(t, "id"), text_in(t, "gpus"), text_in(t, "metric"),
                    joined(t.value("devices", json::array())), joined(t.value("languages", json::array())),
                    text_in(t, "title")});
  }
  if (!as_json) print(table(rows));
  return kOk;
}

int gpus(Api& api, bool as_json) {
  const auto all = parsed(api.ask("GET", "/api/v1/gpus").body).at("slots");
  if (as_json) print_json(all);
  std::vector<std::vector<std::string>> rows{{"SLOT", "DEVICE", "MODEL", "STATE", "SUBMISSION", "REASON"}};
  for (const auto& s : all)
    rows.push_back({text_in(s, "id"), text_in(s, "device"), text_in(s, "model"), text_in(s, "state"),
                    text_in(s, "submission"), text_in(s, "reason")});
  if (!as_json) print(table(rows));
  return kOk;
}

}  // namespace kbench::client
