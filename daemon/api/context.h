// What the handlers of all resources share. Not for other folders.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "daemon/api/api.h"

namespace kbench::api {

struct Context {
  explicit Context(const Dependencies& d) : given(d), store(d.store), queue(d.queue), limits(given.limits) {}
  const Dependencies given;
  store::Store& store;
  queue::Queue& queue;
  const Limits& limits;
  struct Counters {
    std::atomic<std::uint64_t> created{0}, replayed{0}, refused{0}, queue_full{0};
  } submits;
};
using ContextPtr = std::shared_ptr<Context>;

void mount_submissions(http::Server& server, const ContextPtr& context);
void mount_events(http::Server& server, const ContextPtr& context);
void mount_tasks(http::Server& server, const ContextPtr& context);
void mount_gpus(http::Server& server, const ContextPtr& context);
void mount_health(http::Server& server, const ContextPtr& context);
void mount_metrics(http::Server& server, const ContextPtr& context);

// Route of a resource: /api/v1 + pattern, token asked for, a store that fails is a 503, a query parameter not in
// `query` a 400.
void resource(http::Server& server, const char* method, const std::string& pattern, std::set<std::string> query,
              http::Handler handler, http::Work work = http::Work::slow);

// The one with this id, or a 404.
store::Submission submission_named(Context& context, const http::Request& request);

// A whole number within [min, max]; anything else is a 400 naming `field`. `text` empty: `otherwise`.
std::int64_t number_in(const std::string& text, const std::string& field, std::int64_t min, std::int64_t max,
                       std::int64_t otherwise);

nlohmann::ordered_json view_of(const store::Submission& submission);
std::string time_text(store::Millis at);  // "2026-01-31T23:59:59.123Z"; empty for 0
http::Response json_response(int status, const nlohmann::ordered_json& body);

}  // namespace kbench::api
