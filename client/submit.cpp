// submit, wait, events: what follows a submission while it happens.
#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "client/commands.h"
#include "client/json.h"

namespace kbench::client {
namespace {

using nlohmann::json;

std::string random_key() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw std::runtime_error("no randomness to be had");
  std::string key = "kbench-";
  for (const auto byte : bytes) key.append(1, "0123456789abcdef"[byte >> 4]).append(1, "0123456789abcdef"[byte & 15]);
  return key;
}

std::string path_of(const std::string& id) { return "/api/v1/submissions/" + encoded(id); }

bool is_final(const std::string& submission) {
  const auto state = parsed(submission).value("state", "");
  return state == "done" || state == "cancelled" || state == "failed";
}

// Progress for people, on standard error: a line that changes on a terminal, else a line whenever the phase changes.
class Display {
 public:
  ~Display() { clear(); }
  void show(const Progress& progress) {
    if (terminal_) {
      std::fprintf(stderr, "\r\x1b[K%.*s", 120, progress.line().c_str());
    } else if (progress.phase() != last_) {
      std::fprintf(stderr, "%s\n", progress.line().c_str());
    }
    last_ = progress.phase();
  }
  void note(const std::string& text) {
    if (terminal_) std::fprintf(stderr, "\r\x1b[K%.*s", 120, harmless(text).c_str());
  }
  void clear() {
    if (terminal_) std::fputs("\r\x1b[K", stderr);
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  std::string last_;
};

// Follows the events to the end, across lost connections; the submission as it is then. Where events cannot be had (a
// proxy that holds them back), looking at the submission now and then still finds the end.
std::string followed(Api& api, const std::string& id, std::string last,
                     const std::function<void(const Event&)>& on_event,
                     const std::function<void(const std::string&)>& on_loss) {
  for (int fruitless = 0;;) {
    bool came = false, ended = false;
    const bool whole = api.follow(path_of(id) + "/events", last, [&](const Event& event) {
      came = true;
      last = event.id;
      on_event(event);
      ended = event.type == "result";
      return !ended;
    });
    // Also the way out when the last event was lost, or was seen before: an ask() waits for a server that is away.
    auto submission = api.ask("GET", path_of(id)).body;
    if (ended || is_final(submission)) return submission;
    fruitless = came ? 0 : fruitless + 1;
    if (!whole) on_loss("connection lost; again");
    std::this_thread::sleep_for(pause_before(fruitless + 1, ""));
  }
}

int waited(Api& api, const std::string& id, bool as_json) {
  Progress progress;
  Display display;
  const auto submission = followed(
      api, id, "",
      [&](const Event& event) {
        progress.take(event);
        if (!as_json && !progress.ended()) display.show(progress);
      },
      [&](const std::string& text) {
        if (!as_json) display.note(text);
      });
  display.clear();
  std::printf("%s\n", as_json ? line_of(parsed(submission)).c_str() : verdict_line(submission).c_str());
  return exit_code_of(submission);
}

json body_of(const Submit& given) {
  json body{{"task", given.task}, {"files", gathered(given.files)}};
  if (!given.device.empty()) body["device"] = given.device;
  if (!given.language.empty()) body["language"] = given.language;
  if (!given.gpu_model.empty()) body["gpu_model"] = given.gpu_model;
  if (given.priority != 0) body["priority"] = given.priority;
  for (const auto& label : given.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos) throw UsageError("--label " + label + ": write it as name=value");
    body["labels"][label.substr(0, equals)] = label.substr(equals + 1);
  }
  return body;
}

}  // namespace

int submit(Api& api, const Submit& given, bool as_json) {
  // The key makes repeating safe: after a lost answer the server gives the same submission again.
  const auto key = given.idempotency_key.empty() ? random_key() : given.idempotency_key;
  const auto reply = api.ask("POST", "/api/v1/submissions", body_of(given).dump(),
                             {{"Content-Type", "application/json"}, {"Idempotency-Key", key}});
  const auto submission = parsed(reply.body);
  const auto id = submission.at("id").get<std::string>();
  if (!given.id_file.empty() && !(std::ofstream(given.id_file) << id << "\n").flush()) {
    throw UsageError(given.id_file + ": cannot be written; the submission is " + id);
  }
  if (!given.wait) {
    std::printf("%s\n", as_json ? line_of(submission).c_str() : harmless(id).c_str());
    return kOk;
  }
  if (!as_json) std::fprintf(stderr, "%s\n", harmless(id).c_str());
  return waited(api, id, as_json);
}

int wait(Api& api, const std::string& id, bool as_json) { return waited(api, id, as_json); }

int events(Api& api, const std::string& id, std::int64_t after, bool as_json) {
  const auto submission = followed(
      api, id, after == 0 ? "" : std::to_string(after),
      [&](const Event& event) {
        const auto whole = as_json ? json() : parsed(event.data);
        if (as_json) {
          std::printf("%s\n", harmless_json(event.data).c_str());
        } else if (!whole.is_object()) {
          std::printf("%s\n", harmless(event.data).c_str());
        } else {
          std::printf("%6s  %s  %-10s  %s\n", harmless(event.id).c_str(), harmless(whole.value("at", "")).c_str(),
                      harmless(event.type).c_str(), line_of(whole.value("data", json::object())).c_str());
        }
        std::fflush(stdout);
      },
      [](const std::string&) {});
  return exit_code_of(submission);
}

}  // namespace kbench::client
