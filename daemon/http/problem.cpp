#include <nlohmann/json.hpp>

#include "daemon/http/http.h"

namespace kbench::http {

std::string limit_text(std::int64_t value, std::string_view unit, std::string_view option) {
  return std::to_string(value).append(" ").append(unit).append(" (").append(option).append(")");
}

Response problem(const Problem& p) {
  nlohmann::ordered_json body;
  body["type"] = p.type.empty() ? "about:blank" : "urn:kbench:" + p.type;
  body["title"] = p.title;
  body["status"] = p.status;
  if (!p.detail.empty()) body["detail"] = p.detail;
  if (!p.field.empty()) body["field"] = p.field;
  for (const auto& fault : p.errors) {
    body["errors"].push_back({{"field", fault.field}, {"title", fault.title}, {"detail", fault.detail}});
  }
  Response response;
  response.status = p.status;
  response.content_type = "application/problem+json";
  // A name that the client sent may be in the text, in whatever encoding.
  response.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (p.retry_after_s > 0) response.headers["Retry-After"] = std::to_string(p.retry_after_s);
  return response;
}

}  // namespace kbench::http
