#include "daemon/api/api.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/api/context.h"
#include "daemon/api/input.h"

namespace kbench::api {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest digest_of(std::string_view text) {
  Digest out{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

void allow_query(const http::Request& request, const std::set<std::string>& names) {
  for (const auto& [name, value] : request.query) {
    if (names.count(name) != 0) {
      // An unset variable of the client: taken for none, it would filter nothing, or begin a list anew for ever.
      if (!value.empty()) continue;
      throw http::Problem{400, "empty-parameter", name + " is empty", "Give it a value, or leave it out.", name};
    }
    std::string known;
    for (const auto& each : names) known += (known.empty() ? "" : ", ") + each;
    throw http::Problem{400, "unknown-parameter", "unknown query parameter " + name,
                        known.empty() ? "This path takes none." : "This path takes " + known + ".", name};
  }
}

}  // namespace

void mount(http::Server& server, const Dependencies& dependencies) {
  const auto context = std::make_shared<Context>(dependencies);
  // Digests are compared, so that neither the token's bytes nor its length show in the time it takes.
  server.authenticate([known = digest_of(dependencies.token)](std::string_view token) -> std::optional<std::string> {
    const auto given = digest_of(token);
    if (token.empty() || CRYPTO_memcmp(given.data(), known.data(), known.size()) != 0) return std::nullopt;
    return "local";
  });
  mount_submissions(server, context);
  mount_events(server, context);
  mount_tasks(server, context);
  mount_gpus(server, context);
  mount_health(server, context);
  mount_metrics(server, context);
}

void resource(http::Server& server, const char* method, const std::string& pattern, std::set<std::string> query,
              http::Handler handler, http::Work work) {
  const auto guarded = [query = std::move(query), handler = std::move(handler)](const http::Request& request) {
    allow_query(request, query);
    try {
      return handler(request);
    } catch (const store::StoreFault& fault) {
      throw http::Problem{
          503, "store-fault", "the store cannot be used", std::string("Come back later. ") + fault.what(), "", 5};
    }
  };
  server.route(method, "/api/v1" + pattern, http::Access::token, guarded, work);
}

store::Submission submission_named(Context& context, const http::Request& request) {
  auto found = context.store.get(request.path_values.at("id"));
  if (!found) {
    throw http::Problem{404, "unknown-submission", "no submission of this id",
                        "GET /api/v1/submissions lists those there are.", "id"};
  }
  return *std::move(found);
}

std::int64_t number_in(const std::string& text, const std::string& field, std::int64_t min, std::int64_t max,
                       std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  const auto value = whole_number(text);
  if (!value || *value < min || *value > max) {
    throw http::Problem{400, "bad-number", field + " is not a number it can be",
                        "Send a whole number from " + std::to_string(min) + " to " + std::to_string(max) + ".", field};
  }
  return *value;
}

std::string time_text(store::Millis at) {
  if (at == 0) return "";
  const std::time_t seconds = at / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ", static_cast<int>(at % 1000));
  return text.data();
}

nlohmann::ordered_json view_of(const store::Submission& s) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json v;
  v["id"] = s.id;
  v["task"] = s.task;
  v["task_hash"] = s.task_hash;
  v["device"] = s.device;
  v["language"] = s.language;
  v["gpus"] = s.gpus;
  v["gpu_model"] = or_null(s.gpu_model);
  v["submitter"] = s.submitter;
  v["priority"] = s.priority;
  v["labels"] = s.labels;
  v["source_hash"] = s.source_hash;
  v["state"] = store::name_of(s.state);
  v["attempt"] = s.attempt;
  v["cancel_requested"] = s.cancel_requested;
  v["verdict"] = or_null(s.verdict);
  v["reason"] = or_null(s.reason);
  v["reward"] = s.reward ? nlohmann::ordered_json(*s.reward) : nlohmann::ordered_json();
  v["interval"] = s.interval_low && s.interval_high ? nlohmann::ordered_json{*s.interval_low, *s.interval_high}
                                                    : nlohmann::ordered_json();
  v["metric"] = or_null(s.metric);
  v["rank"] = {{"eligible", s.rank_eligible}, {"reason", or_null(s.rank_reason)}};
  v["created"] = time_text(s.created);
  v["updated"] = or_null(time_text(s.updated));
  v["started"] = or_null(time_text(s.started));
  v["finished"] = or_null(time_text(s.finished));
  return v;
}

http::Response json_response(int status, const nlohmann::ordered_json& body) {
  http::Response response;
  response.status = status;
  response.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return response;
}

}  // namespace kbench::api
