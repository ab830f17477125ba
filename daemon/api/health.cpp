// GET /healthz: the process is up. GET /readyz: it can grade, or what keeps it from that.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/api/context.h"

namespace kbench::api {
namespace {

std::vector<Check> all_checks(Context& context) {
  std::vector<Check> checks;
  try {
    context.store.counts();
    checks.push_back({"store", true, ""});
  } catch (const store::StoreFault& fault) {
    checks.push_back({"store", false, fault.what()});
  }
  if (const auto fault = context.queue.fault(); !fault.empty()) checks.push_back({"queue", false, fault});
  if (context.given.tasks.empty())
    checks.push_back({"tasks", false, "no task was found; see the tasks folder of the configuration"});
  const auto slots = context.given.slots();
  const bool usable =
      std::any_of(slots.begin(), slots.end(), [](const SlotStatus& s) { return s.state != "quarantined"; });
  checks.push_back({"slots", usable,
                    usable          ? ""
                    : slots.empty() ? "no slot is configured"
                                    : "every slot is quarantined; see /api/v1/gpus"});
  for (auto& check : context.given.checks()) checks.push_back(std::move(check));
  return checks;
}

}  // namespace

void mount_health(http::Server& server, const ContextPtr& context) {
  server.route(
      "GET", "/healthz", http::Access::open,
      [context](const http::Request&) {
        return json_response(200, {{"status", "up"}, {"version", context->given.version}});
      },
      http::Work::quick);
  server.route("GET", "/readyz", http::Access::open, [context](const http::Request&) {
    bool ready = true;
    auto list = nlohmann::ordered_json::array();
    for (const auto& check : all_checks(*context)) {
      ready = ready && check.ok;
      nlohmann::ordered_json v{{"part", check.part}, {"ok", check.ok}};
      if (!check.ok) v["cause"] = check.cause;
      list.push_back(std::move(v));
    }
    auto response = json_response(ready ? 200 : 503, {{"ready", ready}, {"checks", std::move(list)}});
    if (!ready) response.headers["Retry-After"] = std::to_string(context->limits.retry_after_s);
    return response;
  });
}

}  // namespace kbench::api
