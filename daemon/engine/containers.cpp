// Containers: made once, hardened and read back, ended and removed.
#include <algorithm>
#include <thread>

#include "daemon/engine/impl.h"
#include "daemon/engine/streams.h"

namespace kbench::engine {

namespace {

Json host_config_of(const ContainerSpec& spec) {
  Json security = {"no-new-privileges:true"};
  if (!spec.seccomp.empty()) security.push_back("seccomp=" + spec.seccomp);  // the text itself: the API knows no path
  Json ulimits = Json::array({{{"Name", "core"}, {"Soft", 0}, {"Hard", 0}}});
  for (const Ulimit& limit : spec.ulimits)
    ulimits.push_back({{"Name", limit.name}, {"Soft", limit.value}, {"Hard", limit.value}});
  // Never Binds: those create a missing source as root.
  Json mounts = Json::array();
  for (const Mount& mount : spec.mounts)
    mounts.push_back(
        {{"Type", "bind"}, {"Source", mount.source}, {"Target", mount.target}, {"ReadOnly", mount.read_only}});
  Json host = {
      {"NetworkMode", "none"},
      {"CapDrop", {"ALL"}},
      {"CapAdd", spec.caps_add},
      {"SecurityOpt", security},
      {"ReadonlyRootfs", true},
      {"Init", true},
      {"IpcMode", "private"},
      {"CgroupnsMode", "private"},
      {"Privileged", false},
      {"PidsLimit", spec.pids_max},
      {"Memory", spec.memory_bytes},
      {"MemorySwap", spec.memory_bytes},
      {"CpusetCpus", spec.cpuset},
      {"ShmSize", spec.shm_bytes},
      {"Ulimits", ulimits},
      {"Tmpfs", spec.tmpfs},
      {"Mounts", mounts},
      {"LogConfig",
       {{"Type", "json-file"}, {"Config", {{"max-size", std::to_string(spec.log_file_bytes)}, {"max-file", "2"}}}}},
      {"RestartPolicy", {{"Name", "no"}}},
      {"AutoRemove", false},
      {"OomScoreAdj", 0}};
  for (const DeviceNode& node : spec.devices)
    host["Devices"].push_back({{"PathOnHost", node.path}, {"PathInContainer", node.path}, {"CgroupPermissions", "rw"}});
  for (const DeviceRequest& request : spec.device_requests) {
    Json made = {{"Driver", request.driver}, {"DeviceIDs", request.ids}};
    if (!request.capabilities.empty()) made["Capabilities"] = Json::array({request.capabilities});
    host["DeviceRequests"].push_back(made);
  }
  if (!spec.runtime.empty()) host["Runtime"] = spec.runtime;
  return host;
}

Json body_of(const ContainerSpec& spec) {
  Json env = Json::array();
  for (const auto& [name, value] : spec.env) env.push_back(std::string(name).append("=").append(value));
  return {{"Image", spec.image},
          {"Entrypoint", spec.command},
          {"Cmd", Json::array()},
          {"User", spec.user},
          {"Env", env},
          {"WorkingDir", spec.working_dir},
          {"Labels", spec.labels},
          {"NetworkDisabled", true},
          {"StopTimeout", 1},
          {"Tty", false},
          {"OpenStdin", false},
          {"HostConfig", host_config_of(spec)}};
}

// Engines that do not know device requests or a runtime (podman) drop them without a word.
std::string device_difference(const Json& wanted, const Json& got) {
  for (const char* field : {"Devices", "DeviceRequests"}) {
    const Json &asked = child_of(wanted, field), &kept = child_of(got, field);
    if ((asked.is_array() ? asked.size() : 0) != (kept.is_array() ? kept.size() : 0)) return field;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (text_of(asked[i], "PathOnHost") != text_of(kept[i], "PathOnHost")) return field;
      if (text_of(asked[i], "Driver") != text_of(kept[i], "Driver")) return field;
      if (list_of(asked[i], "DeviceIDs") != list_of(kept[i], "DeviceIDs")) return field;
    }
  }
  const std::string runtime = text_of(wanted, "Runtime");
  return runtime.empty() || runtime == text_of(got, "Runtime") ? "" : "Runtime";
}

// Unknown fields are ignored by the Engine without a word (PidLimit for PidsLimit is no limit), so each is read back.
std::string difference(const Json& wanted, const Json& got) {
  for (const char* field : {"NetworkMode", "CapDrop", "SecurityOpt", "ReadonlyRootfs", "Init", "IpcMode",
                            "CgroupnsMode", "Privileged", "PidsLimit", "Memory", "MemorySwap", "CpusetCpus", "ShmSize",
                            "Tmpfs", "AutoRemove", "OomScoreAdj", "LogConfig"})
    if (child_of(got, field) != wanted.at(field)) return field;
  // Newer Engines write "CAP_SETUID" for "SETUID", in an order of their own.
  std::set<std::string> caps;
  for (const std::string& cap : list_of(got, "CapAdd")) caps.insert(cap.starts_with("CAP_") ? cap.substr(4) : cap);
  const std::vector<std::string> asked = wanted.at("CapAdd");
  if (caps != std::set<std::string>(asked.begin(), asked.end())) return "CapAdd";
  std::set<Json> limits;
  for (const Json& limit : child_of(got, "Ulimits")) limits.insert(limit);
  for (const Json& limit : wanted.at("Ulimits"))
    if (!limits.contains(limit)) return "Ulimits";
  if (text_of(child_of(got, "RestartPolicy"), "Name") != "no") return "RestartPolicy";
  const Json& mounts = child_of(got, "Mounts");
  if ((mounts.is_array() ? mounts.size() : 0) != wanted.at("Mounts").size()) return "Mounts";
  for (std::size_t i = 0; i < wanted.at("Mounts").size(); ++i)
    for (const char* field : {"Source", "Target"})
      if (text_of(mounts[i], field) != text_of(wanted.at("Mounts")[i], field)) return "Mounts";
  for (std::size_t i = 0; i < wanted.at("Mounts").size(); ++i)
    if (flag_of(mounts[i], "ReadOnly") != flag_of(wanted.at("Mounts")[i], "ReadOnly")) return "Mounts";
  return device_difference(wanted, got);
}

bool same_labels(const std::map<std::string, std::string>& wanted, const std::map<std::string, std::string>& got) {
  for (const auto& [name, value] : wanted) {  // the image's own labels come on top
    const auto found = got.find(name);
    if (found == got.end() || found->second != value) return false;
  }
  return true;
}

void check_spec(const ContainerSpec& spec) {
  const auto refuse = [&](const char* what) { throw EngineError(Kind::bad_request, 0, spec.name + ": " + what); };
  if (spec.name.empty() || spec.labels.empty() || spec.command.empty()) refuse("needs a name, labels and a command");
  if (spec.memory_bytes <= 0 || spec.pids_max <= 0 || spec.shm_bytes <= 0 || spec.log_file_bytes <= 0)
    refuse("memory, pids, shm and log need a limit: the Engine takes 0 for none");
  // Its default moved from a million to 1024 between Engines.
  if (std::none_of(spec.ulimits.begin(), spec.ulimits.end(),
                   [](const Ulimit& limit) { return limit.name == "nofile"; }))
    refuse("open files need a limit");
  for (const auto& [path, options] : spec.tmpfs)
    if (options.find("size=") == options.npos) refuse("a tmpfs needs a size");
}

}  // namespace

Container container_of(const Json& inspected) {
  Container container;
  container.id = text_of(inspected, "Id");
  container.name = text_of(inspected, "Name");
  if (container.name.starts_with('/')) container.name.erase(0, 1);
  container.image = text_of(inspected, "Image");
  container.labels = texts_of(child_of(inspected, "Config"), "Labels");
  const Json& state = child_of(inspected, "State");
  container.status = text_of(state, "Status");
  container.exit_code = static_cast<int>(number_of(state, "ExitCode"));
  container.oom_killed = flag_of(state, "OOMKilled");
  container.error = sanitised(text_of(state, "Error"));
  if (container.id.empty() || container.status.empty())
    throw EngineError(Kind::failed, 0, "container: the answer has no Id or State");
  return container;
}

std::optional<Json> Engine::Impl::inspect_json(const std::string& id_or_name) {
  const Call made{.method = "GET", .path = "/containers/" + id_or_name + "/json", .timeout = options.inspect_timeout};
  const HttpReply reply = call(made);
  if (reply.status == 404) return std::nullopt;
  if (reply.status != 200) throw failure(reply, "container " + id_or_name);
  return json_of(reply.body, "container " + id_or_name);
}

std::optional<Container> Engine::Impl::inspect(const std::string& id_or_name) {
  const std::optional<Json> inspected = inspect_json(id_or_name);
  if (!inspected) return std::nullopt;
  return container_of(*inspected);
}

std::optional<Container> Engine::inspect(const std::string& id_or_name) { return impl_->inspect(id_or_name); }

// What there is under the name after a creation of unknown outcome: adopted when it is what we asked for and has not
// run, deleted when it is ours and something else. Empty: make it again.
std::string Engine::Impl::adopt(const ContainerSpec& spec) {
  const std::optional<Container> there = inspect(spec.name);
  if (!there) return {};
  const auto owner = spec.labels.find("kbench.owner");
  if (owner != spec.labels.end() && !same_labels({*owner}, there->labels))
    throw EngineError(Kind::conflict, 409, spec.name + ": the name is taken by a container of somebody else");
  if (same_labels(spec.labels, there->labels) && there->image == spec.image && there->status == "created")
    return there->id;
  remove(there->id);
  return {};
}

std::string Engine::Impl::make_once(const ContainerSpec& spec, const std::string& body, std::string& warning) {
  const Call made{.method = "POST",
                  .path = "/containers/create?name=" + url_encoded(spec.name),
                  .body = body,
                  .timeout = options.create_timeout};
  constexpr int kTries = 3;
  for (int attempt = 1;; ++attempt) {
    try {
      const Turnstile::Pass pass(changes);
      const Json answer = demand_json(made);
      for (const std::string& text : list_of(answer, "Warnings")) warning += sanitised(text) + " ";
      if (const std::string id = text_of(answer, "Id"); !id.empty()) return id;
      throw EngineError(Kind::failed, 201, spec.name + ": the answer has no Id");
    } catch (const EngineError& error) {
      // A name that is taken, and an answer that never came: a creation whose client is gone still happens.
      const bool unsure = error.kind == Kind::conflict || error.kind == Kind::timeout ||
                          error.kind == Kind::unreachable || (error.kind == Kind::failed && error.status < 300);
      if (!unsure) throw;
      if (const std::string id = adopt(spec); !id.empty()) return id;
      if (attempt == kTries) throw;
    }
    std::this_thread::sleep_for(options.backoff_min * (1 << attempt));
  }
}

std::string Engine::create(const ContainerSpec& spec) {
  check_spec(spec);
  const Json body = body_of(spec);
  std::string warning;
  const std::string id = impl_->make_once(spec, body.dump(), warning);
  const std::optional<Json> inspected = impl_->inspect_json(id);
  if (!inspected) throw EngineError(Kind::not_found, 404, spec.name + ": gone right after its creation");
  std::string wrong = difference(body.at("HostConfig"), child_of(*inspected, "HostConfig"));
  const Json& config = child_of(*inspected, "Config");
  if (wrong.empty() && text_of(config, "User") != spec.user) wrong = "User";
  if (wrong.empty() && list_of(config, "Entrypoint") != spec.command) wrong = "Entrypoint";
  if (wrong.empty() && warning.empty()) return id;
  remove(id);
  throw EngineError(Kind::failed, 201,
                    spec.name + (wrong.empty() ? ": a limit is not in force, the Engine warns: " + warning
                                               : ": the Engine did not keep " + wrong));
}

std::vector<Container> Engine::containers(const std::string& label) {
  const Json answer = impl_->demand_json({.method = "GET",
                                          .path = "/containers/json?all=1&filters=" + label_filter(label),
                                          .timeout = impl_->options.inspect_timeout});
  if (!answer.is_array()) throw EngineError(Kind::failed, 0, "containers: the answer is no list");
  std::vector<Container> found;
  for (const Json& item : answer) {
    Container container;
    container.id = text_of(item, "Id");
    const std::vector<std::string> names = list_of(item, "Names");
    if (!names.empty()) container.name = names.front().starts_with('/') ? names.front().substr(1) : names.front();
    container.image = text_of(item, "ImageID");
    container.labels = texts_of(item, "Labels");
    container.status = text_of(item, "State");
    found.push_back(std::move(container));
  }
  return found;
}

void Engine::kill(const std::string& id) {
  const Turnstile::Pass pass(impl_->changes);
  const Call call{.method = "POST", .path = "/containers/" + id + "/kill", .timeout = impl_->options.kill_timeout};
  const HttpReply reply = impl_->call(call);
  if (reply.status != 204 && reply.status != 404 && reply.status != 409)
    throw impl_->failure(reply, "killing " + id.substr(0, 12));
}

void Engine::Impl::remove(const std::string& id) {
  const auto deadline = std::chrono::steady_clock::now() + options.remove_timeout;
  milliseconds pause = options.backoff_min;
  while (true) {
    HttpReply reply;
    {
      const Turnstile::Pass pass(changes);
      reply =
          call({.method = "DELETE", .path = "/containers/" + id + "?force=1&v=1", .timeout = options.remove_timeout});
    }
    if (reply.status == 204 || reply.status == 404) return;
    // 409: somebody is at it; 500: a device was busy. Both pass.
    if (reply.status != 409 && reply.status != 500) throw failure(reply, "removing " + id.substr(0, 12));
    if (std::chrono::steady_clock::now() + pause >= deadline) throw failure(reply, "removing " + id.substr(0, 12));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, options.backoff_max);
    if (!inspect(id)) return;
  }
}

void Engine::remove(const std::string& id) { impl_->remove(id); }

std::string Engine::logs(const std::string& id) {
  constexpr std::size_t kFrameBytesMax = 1u << 20;
  TailText tail(impl_->options.log_bytes_max);
  std::string daemon_error;
  LogDemuxer demuxer(kFrameBytesMax, [&](LogDemuxer::Source source, std::string_view bytes) {
    if (source == LogDemuxer::Source::daemon) {
      if (daemon_error.size() < 1000) daemon_error.append(bytes.substr(0, 1000));
    } else {
      tail.add(bytes);
    }
  });
  Call call{
      .method = "GET", .path = "/containers/" + id + "/logs?stdout=1&stderr=1", .timeout = impl_->options.logs_timeout};
  call.on_body = [&](std::string_view bytes) { demuxer.feed(bytes); };
  try {
    impl_->demand(call);
  } catch (const BadStream& error) {
    throw EngineError(Kind::failed, 200, std::string("logs: ") + error.what());
  }
  if (!daemon_error.empty()) throw EngineError(Kind::failed, 200, "logs: " + sanitised(daemon_error));
  return tail.text();
}

}  // namespace kbench::engine
