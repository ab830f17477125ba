// /submissions: hand in, look, list, cancel; log and details of one.
#include <kbench/events.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/api/context.h"
#include "daemon/api/input.h"

namespace kbench::api {
namespace {

std::string key_of(const http::Request& request, const Limits& limits) {
  std::string key(request.header("Idempotency-Key"));
  const bool visible = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  // Empty is what a client's unset variable looks like: taken for none, its retries would be submissions of their own.
  const bool empty = key.empty() && request.headers.contains("idempotency-key");
  if (!visible || empty || key.size() > limits.idempotency_key_bytes_max) {
    throw http::Problem{400, "bad-key", "an Idempotency-Key that cannot be one",
                        "Send visible ASCII characters, at least one, at most " +
                            limit_text(limits.idempotency_key_bytes_max, "bytes", "idempotency_key_bytes_max") + ".",
                        "Idempotency-Key"};
  }
  return key;
}

http::Response accepted(const store::Submission& submission, bool replayed) {
  auto response = json_response(202, view_of(submission));
  response.headers["Location"] = "/api/v1/submissions/" + submission.id;
  if (replayed) response.headers["Idempotency-Replayed"] = "true";
  return response;
}

http::Response submit(Context& context, const http::Request& request) {
  const auto key = key_of(request, context.limits);
  store::NewSubmission wanted;
  try {
    wanted = checked(read_draft(request, context.limits), context.given.tasks, context.given.slots(), context.limits);
  } catch (const http::Problem&) {
    ++context.submits.refused;
    throw;
  }
  wanted.submitter = request.submitter;
  wanted.idempotency_key = key;
  const auto admission = context.queue.submit(wanted);
  const int patience_s = context.limits.retry_after_s;
  switch (admission.how) {
    case queue::Admitted::created:
      ++context.submits.created;
      return accepted(admission.submission, false);
    case queue::Admitted::replayed:
      ++context.submits.replayed;
      return accepted(admission.submission, true);
    case queue::Admitted::key_conflict:
      ++context.submits.refused;
      throw http::Problem{422, "key-reused", "this Idempotency-Key came with another request before",
                          "Use a new key for a new submission.", "Idempotency-Key"};
    case queue::Admitted::key_in_flight:
      ++context.submits.refused;
      throw http::Problem{409,
                          "in-flight",
                          "a request with this Idempotency-Key is being handled",
                          "Come back in a moment.",
                          "Idempotency-Key",
                          1};
    case queue::Admitted::queue_full:
      break;
    case queue::Admitted::stopping:
      throw http::Problem{503, "stopping", "the server is going down", "Come back when it is up again.",
                          "",  patience_s};
  }
  ++context.submits.queue_full;
  throw http::Problem{503,
                      "queue-full",
                      "the queue is full",
                      "Come back later. There may wait " +
                          http::limit_text(context.queue.depth_max(), "submissions", "queue.depth_max") + ".",
                      "",
                      patience_s};
}

// Of a filter that has so many values only; empty when it was not given.
std::string one_of(const http::Request& request, const char* name, const std::vector<std::string>& values) {
  const auto given = request.query.find(name);
  if (given == request.query.end()) return "";
  if (std::find(values.begin(), values.end(), given->second) != values.end()) return given->second;
  std::string known;
  for (const auto& value : values) known += (known.empty() ? "" : ", ") + value;
  throw http::Problem{400, std::string("unknown-") + name, std::string("unknown ") + name + " " + given->second,
                      "It is one of " + known + ".", name};
}

// A name alone is one of the tasks that are here, else no submission could have it. A whole id may be one that is gone.
std::string task_in(const Context& context, const std::string& given) {
  std::string fix;
  if (const auto* task = find_task(context.given.tasks, given, fix); task != nullptr) return task->id;
  if (given.empty() || given.find('/') != std::string::npos) return given;
  throw http::Problem{400, "unknown-task", "no task, or more than one, of the name " + given, fix, "task"};
}

http::Response list(Context& context, const http::Request& request) {
  const auto asked = [&](const char* name) {
    const auto it = request.query.find(name);
    return it == request.query.end() ? std::string() : it->second;
  };
  store::ListFilter filter;
  filter.task = task_in(context, asked("task"));
  filter.submitter = asked("submitter");
  filter.device = one_of(request, "device", {"cpu", "cuda"});
  filter.verdict =
      one_of(request, "verdict",
             {events::kCorrect, events::kIncorrect, events::kCompileError, events::kRuntimeError, events::kTimeout,
              events::kOutOfMemory, events::kIntegrityViolation, events::kRuleViolation, events::kInfra});
  filter.state = store::state_named(
      one_of(request, "state", {"queued", "preparing", "ready", "measuring", "done", "cancelled", "failed"}));
  filter.cursor = asked("cursor");
  filter.limit =
      static_cast<int>(number_in(asked("limit"), "limit", 1, context.limits.page_max, context.limits.page_default));
  if (const auto label = asked("label"); !label.empty()) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      throw http::Problem{400, "bad-label", "a label without a name and =", "Send label=NAME=VALUE.", "label"};
    filter.label_key = label.substr(0, equals);
    filter.label_value = label.substr(equals + 1);
  }
  store::Page page;
  try {
    page = context.store.list(filter);
  } catch (const store::BadCursor&) {
    throw http::Problem{400, "bad-cursor", "not a cursor of this list", "Send `next` of the page before.", "cursor"};
  }
  auto all = nlohmann::ordered_json::array();
  for (const auto& submission : page.submissions) all.push_back(view_of(submission));
  return json_response(200,
                       {{"submissions", std::move(all)},
                        {"next", page.next.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(page.next)}});
}

http::Response cancel(Context& context, const http::Request& request) {
  const auto how = context.store.cancel(request.path_values.at("id"));
  const auto submission = submission_named(context, request);  // 404 for an unknown one
  // Cancelled already is what was asked for; a retry after a lost answer must not look like a failure.
  if (how == store::Cancelled::already_final && submission.state != store::State::cancelled) {
    throw http::Problem{409, "already-final",
                        "the submission has ended: " + std::string(store::name_of(submission.state)),
                        "There is nothing left to cancel.", "id"};
  }
  return json_response(how == store::Cancelled::requested ? 202 : 200, view_of(submission));
}

http::Response log(Context& context, const http::Request& request) {
  const auto submission = submission_named(context, request);
  http::Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = context.store.log(submission.id).value_or("");
  return response;
}

http::Response details(Context& context, const http::Request& request) {
  const auto submission = submission_named(context, request);
  const auto text = context.store.details(submission.id);
  if (!text || text->empty()) {
    throw http::Problem{
        404, "no-details", "no details of this submission",
        std::string("It is ") + store::name_of(submission.state) + "; details come with a verdict of a measurement.",
        "id"};
  }
  http::Response response;
  response.body = *text;
  return response;
}

}  // namespace

void mount_submissions(http::Server& server, const ContextPtr& context) {
  resource(server, "POST", "/submissions", {}, [=](const http::Request& r) { return submit(*context, r); });
  resource(server, "GET", "/submissions",
           {"task", "submitter", "device", "verdict", "state", "label", "limit", "cursor"},
           [=](const http::Request& r) { return list(*context, r); });
  resource(
      server, "GET", "/submissions/{id}", {},
      [=](const http::Request& r) { return json_response(200, view_of(submission_named(*context, r))); },
      http::Work::quick);
  resource(server, "DELETE", "/submissions/{id}", {}, [=](const http::Request& r) { return cancel(*context, r); });
  resource(server, "GET", "/submissions/{id}/log", {}, [=](const http::Request& r) { return log(*context, r); });
  resource(server, "GET", "/submissions/{id}/details", {},
           [=](const http::Request& r) { return details(*context, r); });
}

}  // namespace kbench::api
