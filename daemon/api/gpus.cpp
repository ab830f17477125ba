// GET /gpus: the slots, cpu sets among them.
#include <nlohmann/json.hpp>

#include "daemon/api/context.h"

namespace kbench::api {

void mount_gpus(http::Server& server, const ContextPtr& context) {
  resource(server, "GET", "/gpus", {}, [context](const http::Request&) {
    auto all = nlohmann::ordered_json::array();
    const auto or_null = [](const std::string& text) {
      return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
    };
    for (const auto& slot : context->given.slots()) {
      nlohmann::ordered_json v;
      v["id"] = slot.id;
      v["device"] = slot.device;
      v["model"] = slot.model;
      v["uuid"] = or_null(slot.uuid);
      v["state"] = slot.state;
      v["reason"] = or_null(slot.reason);
      v["submission"] = or_null(slot.submission);
      all.push_back(std::move(v));
    }
    return json_response(200, {{"slots", std::move(all)}});
  });
}

}  // namespace kbench::api
