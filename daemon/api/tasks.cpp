// GET /tasks, /tasks/{family}/{name}, and /tasks/{name} where the name is unique.
#include <nlohmann/json.hpp>

#include "daemon/api/context.h"
#include "daemon/api/input.h"

namespace kbench::api {
namespace {

nlohmann::ordered_json brief(const Task& task) {
  nlohmann::ordered_json v;
  v["id"] = task.id;
  v["title"] = task.title;
  v["version"] = task.version;
  v["hash"] = task.hash;
  v["metric"] = task.metric;
  v["gpus"] = task.gpus;
  v["devices"] = task.devices;
  v["languages"] = task.languages;
  return v;
}

http::Response one(const Context& context, const std::string& id) {
  std::string fix;
  const auto* task = find_task(context.given.tasks, id, fix);
  if (task == nullptr) throw http::Problem{404, "unknown-task", "no task " + id, fix, "task"};
  auto v = brief(*task);
  v["instruction"] = task->instruction;
  return json_response(200, v);
}

}  // namespace

void mount_tasks(http::Server& server, const ContextPtr& context) {
  resource(server, "GET", "/tasks", {}, [context](const http::Request&) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& task : context->given.tasks) all.push_back(brief(task));
    return json_response(200, {{"tasks", std::move(all)}});
  });
  resource(server, "GET", "/tasks/{name}", {},
           [context](const http::Request& request) { return one(*context, request.path_values.at("name")); });
  resource(server, "GET", "/tasks/{family}/{name}", {}, [context](const http::Request& request) {
    return one(*context, request.path_values.at("family") + "/" + request.path_values.at("name"));
  });
}

}  // namespace kbench::api
