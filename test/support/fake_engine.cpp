#include "test/support/fake_engine.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

namespace kbench::test {

using Json = nlohmann::json;

namespace {

FakeReply json(const Json& body, int status = 200) { return {.status = status, .body = body.dump()}; }

std::string frames_of(const std::string& log) {
  std::string out;
  if (log.empty()) return out;
  const auto size = static_cast<std::uint32_t>(log.size());
  out.assign({1, 0, 0, 0, char(size >> 24), char(size >> 16), char(size >> 8), char(size)});
  return out + log;
}

bool has_label(const std::map<std::string, std::string>& labels, const std::string& wanted) {
  const std::size_t equals = wanted.find('=');
  const auto found = labels.find(wanted.substr(0, equals));
  return found != labels.end() && (equals == wanted.npos || found->second == wanted.substr(equals + 1));
}

std::pair<int, int> numbers_of(const std::string& version) {
  const std::size_t dot = std::min(version.find('.'), version.size());
  return {std::atoi(version.c_str()), std::atoi(version.c_str() + std::min(dot + 1, version.size()))};
}

std::string label_wanted(const FakeRequest& request) {
  if (!request.query.contains("filters")) return {};
  const Json filters = Json::parse(request.query.at("filters"));
  return filters.contains("label") ? filters["label"][0].get<std::string>() : "";
}

FakeJob job_of(const Json& config) {
  FakeJob job;
  job.config = config.dump();
  job.image = config["Image"];
  job.labels = config.value("Labels", std::map<std::string, std::string>{});
  job.command = config.value("Entrypoint", std::vector<std::string>{});
  for (const std::string& entry : config.value("Env", std::vector<std::string>{}))
    job.env[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  for (const Json& mount : config["HostConfig"].value("Mounts", Json::array()))
    job.mounts[mount["Target"]] = mount["Source"];
  return job;
}

}  // namespace

FakeReply fake_error(int status, const std::string& message) { return json({{"message", message}}, status); }

FakeEngine::FakeEngine(std::string socket) : FakeHttp(std::move(socket)) {
  otherwise([this](const FakeRequest& request) { return respond(request); });
}

FakeEngine::~FakeEngine() {
  end_all();
  down();
}

void FakeEngine::end_all() {
  std::map<std::string, std::shared_ptr<Box>> boxes;
  {
    const std::lock_guard lock(model_);
    boxes = boxes_;
  }
  for (auto& [id, box] : boxes)
    if (box->thread.joinable()) {
      box->thread.request_stop();
      box->thread.join();
    }
}

void FakeEngine::run(Behaviour behaviour) {
  const std::lock_guard lock(model_);
  behaviour_ = std::move(behaviour);
}

std::string FakeEngine::add_image(const std::string& tag, const std::string& labels) {
  const std::lock_guard lock(model_);
  char id[80];
  std::snprintf(id, sizeof id, "sha256:%064d", ++made_);
  for (auto& [other, image] : images_) image.tags.erase(tag);
  FakeImage& image = images_[id];
  image.id = id;
  if (!tag.empty()) image.tags.insert(tag);
  Json parsed = Json::object();
  std::istringstream parts(labels);
  for (std::string part; std::getline(parts, part, ',');)
    parsed[part.substr(0, part.find('='))] = part.substr(part.find('=') + 1);
  image.labels = parsed.dump();
  return id;
}

std::set<std::string> FakeEngine::image_tags() const {
  const std::lock_guard lock(model_);
  std::set<std::string> tags;
  for (const auto& [id, image] : images_) tags.insert(image.tags.begin(), image.tags.end());
  return tags;
}

std::vector<FakeJob> FakeEngine::containers() const {
  const std::lock_guard lock(model_);
  std::vector<FakeJob> jobs;
  for (const auto& [id, box] : boxes_) jobs.push_back(box->job);
  return jobs;
}

int FakeEngine::running() const {
  const std::lock_guard lock(model_);
  int count = 0;
  for (const auto& [id, box] : boxes_) count += box->status == "running";
  return count;
}

void FakeEngine::restart(std::chrono::milliseconds away, bool live_restore) {
  if (!live_restore) end_all();
  down();
  std::this_thread::sleep_for(away);
  up();
}

FakeReply FakeEngine::built(const std::string& log) {
  const std::string id = add_image("built:" + std::to_string(made_));
  const std::string body = Json{{"stream", log}}.dump() + "\r\n" + Json{{"aux", {{"ID", id}}}}.dump() + "\r\n";
  return {.body = body, .chunk_bytes = 4096};
}

FakeReply FakeEngine::respond(const FakeRequest& request) {
  if (!request.version.empty() && numbers_of(request.version) > numbers_of(api_version))
    return fake_error(
        400, "client version " + request.version + " is too new. Maximum supported API version is " + api_version);
  if (!request.version.empty() && numbers_of(request.version) < numbers_of(min_api_version))
    return fake_error(400, "client version " + request.version + " is too old. Minimum supported API version is " +
                               min_api_version + ", please upgrade your client to a newer version");
  if (request.path == "/_ping")
    return {.body = "OK", .content_type = "text/plain", .headers = {{"Api-Version", api_version}}};
  if (request.path == "/version")
    return json({{"ApiVersion", api_version},
                 {"MinAPIVersion", min_api_version},
                 {"Version", "fake"},
                 {"Components", Json::array()}});
  if (request.path == "/info")
    return json({{"DockerRootDir", data_root},
                 {"CgroupVersion", "1"},
                 {"Runtimes", {{"runc", Json::object()}}},
                 {"Warnings", nullptr}});
  if (request.path == "/events")
    return {.stream = [](FakeWire& wire, const auto&) {
      while (!wire.gone()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return false;
    }};
  if (request.path == "/build" || request.path.starts_with("/images/")) return image_call(request);
  if (request.path.starts_with("/containers/")) return container_call(request);
  return fake_error(404, "page not found");
}

FakeReply FakeEngine::image_call(const FakeRequest& request) {
  if (request.path == "/build") {
    const std::string tag = request.query.contains("t") ? request.query.at("t") : "untagged";
    const std::string id = add_image(tag);
    const std::lock_guard lock(model_);
    images_[id].labels = request.query.contains("labels") ? request.query.at("labels") : "{}";
    return {.body = R"({"stream":"Step 1/1 : FROM x\n"})"
                    "\r\n" +
                    Json{{"aux", {{"ID", id}}}}.dump() + "\r\n",
            .chunk_bytes = 7};
  }
  const std::lock_guard lock(model_);
  if (request.path == "/images/json") {
    Json list = Json::array();
    for (const auto& [id, image] : images_) {
      const Json labels = Json::parse(image.labels);
      const std::set<std::string> tags = image.tags.empty() ? std::set<std::string>{"<none>:<none>"} : image.tags;
      if (has_label(labels.get<std::map<std::string, std::string>>(), label_wanted(request)))
        list.push_back({{"Id", id}, {"RepoTags", tags}, {"Labels", labels}, {"Created", 1}, {"Size", 1000}});
    }
    return json(list);
  }
  std::string name = request.path.substr(8);
  const bool inspection = name.ends_with("/json"), tagging = name.ends_with("/tag");
  name.resize(name.size() - (inspection ? 5 : tagging ? 4 : 0));
  for (auto it = images_.begin(); it != images_.end(); ++it) {
    if (it->first != name && !it->second.tags.contains(name)) continue;
    if (inspection) {
      return json({{"Id", it->first},
                   {"RepoTags", it->second.tags},
                   {"Size", 1000},
                   {"Config", {{"Labels", Json::parse(it->second.labels)}}}});
    }
    if (tagging) {
      it->second.tags.insert(request.query.at("repo") + ":" + request.query.at("tag"));
      return {.status = 201};
    }
    for (const auto& [id, box] : boxes_)
      if (box->job.image == it->first)
        return fake_error(409, "conflict: unable to delete " + name + " (must be forced) - image is being used by " +
                                   (box->status == "running" ? "running" : "stopped") + " container " + id);
    images_.erase(it);
    return json(Json::array());
  }
  return fake_error(404, "No such image: " + name);
}

std::shared_ptr<FakeEngine::Box> FakeEngine::find(const std::string& id_or_name) {
  const std::lock_guard lock(model_);
  for (const auto& [id, box] : boxes_)
    if (id == id_or_name || box->job.name == id_or_name) return box;
  return nullptr;
}

FakeReply FakeEngine::container_call(const FakeRequest& request) {
  const std::string rest = request.path.substr(12);
  if (rest == "create") return create(request);
  if (rest == "json") return list(request);
  const std::string what = rest.substr(0, rest.find('/'));
  const std::string verb = rest.size() > what.size() ? rest.substr(what.size() + 1) : "";
  const std::shared_ptr<Box> box = find(what);
  if (!box) return fake_error(404, "No such container: " + what);
  if (verb == "json") return inspect(box);
  if (verb == "start") return start(box);
  if (verb == "wait")
    return wait(box, request.query.contains("condition") ? request.query.at("condition") : "not-running");
  std::unique_lock lock(model_);
  if (verb == "logs")
    return {.body = frames_of(box->end.log), .content_type = "application/vnd.docker.raw-stream", .chunk_bytes = 5};
  const bool running = box->status == "running";
  if (verb == "kill" && !running) return fake_error(409, "Container " + what + " is not running");
  if (running) {
    lock.unlock();
    box->thread.request_stop();
    lock.lock();
    changed_.wait(lock, [&] { return box->status != "running"; });
    if (box->end.exit_code == 0) box->end.exit_code = 137;
  }
  if (request.method == "DELETE") {
    box->status = "removed";
    boxes_.erase(box->job.id);
    lock.unlock();
    changed_.notify_all();
    if (box->thread.joinable()) box->thread.join();
  }
  return {.status = 204};
}

FakeReply FakeEngine::create(const FakeRequest& request) {
  if (request.headers.at("content-type") != "application/json")
    return fake_error(400, "Content-Type must be application/json");
  auto box = std::make_shared<Box>();
  box->job = job_of(Json::parse(request.body));
  box->job.name = request.query.at("name");
  if (const auto taken = find(box->job.name))
    return fake_error(409, "Conflict. The container name \"/" + box->job.name + "\" is already in use by container \"" +
                               taken->job.id + "\"");
  for (const auto& [target, source] : box->job.mounts)
    if (::access(source.c_str(), F_OK) != 0) return fake_error(400, "bind source path does not exist: " + source);
  const std::lock_guard lock(model_);
  if (!images_.contains(box->job.image)) return fake_error(404, "No such image: " + box->job.image);
  char id[80];
  std::snprintf(id, sizeof id, "%064x", ++made_);
  box->job.id = id;
  boxes_[id] = box;
  return json({{"Id", id}, {"Warnings", Json::array()}}, 201);
}

FakeReply FakeEngine::start(const std::shared_ptr<Box>& box) {
  const std::lock_guard lock(model_);
  if (box->status != "created") return {.status = 304};
  box->status = "running";
  box->thread = std::jthread([this, box_raw = box.get(), behaviour = behaviour_](std::stop_token killed) {
    FakeEnd end = behaviour ? behaviour(box_raw->job, killed) : FakeEnd{};
    if (killed.stop_requested() && end.exit_code == 0) end.exit_code = 137;
    {
      const std::lock_guard done(model_);
      box_raw->end = end;
      box_raw->status = "exited";
    }
    changed_.notify_all();
  });
  return {.status = 204};
}

FakeReply FakeEngine::wait(const std::shared_ptr<Box>& box, const std::string& condition) {
  // Headers go out at registration. "not-running" on a created container answers at once; "next-exit" after the exit
  // never does.
  bool ended_before;
  {
    const std::lock_guard lock(model_);
    ended_before = box->status == "exited";
  }
  return {.stream = [this, box, condition, ended_before](FakeWire& wire, const auto& chunk) {
    std::unique_lock lock(model_);
    while (true) {
      const bool ended = box->status == "exited" && !(condition == "next-exit" && ended_before);
      if (ended || box->status == "removed" || (condition == "not-running" && box->status == "created")) break;
      lock.unlock();
      if (wire.gone()) return false;
      lock.lock();
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    chunk(Json{{"StatusCode", box->end.exit_code}}.dump() + "\n");
    return true;
  }};
}

FakeReply FakeEngine::list(const FakeRequest& request) {
  const std::lock_guard lock(model_);
  Json found = Json::array();
  for (const auto& [id, box] : boxes_)
    if (has_label(box->job.labels, label_wanted(request)))
      found.push_back({{"Id", id},
                       {"Names", {"/" + box->job.name}},
                       {"ImageID", box->job.image},
                       {"Labels", box->job.labels},
                       {"State", box->status}});
  return json(found);
}

FakeReply FakeEngine::inspect(const std::shared_ptr<Box>& box) {
  const std::lock_guard lock(model_);
  const Json config = Json::parse(box->job.config);
  return json({{"Id", box->job.id},
               {"Name", "/" + box->job.name},
               {"Image", box->job.image},
               {"Config", config},
               {"HostConfig", config["HostConfig"]},
               {"State",
                {{"Status", box->status},
                 {"ExitCode", box->end.exit_code},
                 {"OOMKilled", box->end.oom_killed},
                 {"Error", ""}}}});
}

}  // namespace kbench::test
