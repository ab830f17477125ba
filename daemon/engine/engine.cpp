#include "daemon/engine/engine.h"

#include <charconv>

#include "daemon/engine/impl.h"
#include "daemon/engine/streams.h"

namespace kbench::engine {

const char* name_of(EngineError::Kind kind) {
  switch (kind) {
    case Kind::unreachable:
      return "unreachable";
    case Kind::not_found:
      return "not found";
    case Kind::conflict:
      return "conflict";
    case Kind::bad_request:
      return "bad request";
    case Kind::no_space:
      return "no space";
    case Kind::failed:
      return "failed";
    case Kind::timeout:
      return "timeout";
    case Kind::cancelled:
      return "cancelled";
  }
  return "?";
}

const Json& child_of(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& object, const char* key) {
  const Json& value = child_of(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise) {
  const Json& value = child_of(object, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

bool flag_of(const Json& object, const char* key) {
  const Json& value = child_of(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::map<std::string, std::string> texts_of(const Json& object, const char* key) {
  std::map<std::string, std::string> out;
  const Json& value = child_of(object, key);
  if (!value.is_object()) return out;
  for (const auto& [name, text] : value.items())
    if (text.is_string()) out[name] = text.get<std::string>();
  return out;
}

std::vector<std::string> list_of(const Json& object, const char* key) {
  std::vector<std::string> out;
  const Json& value = child_of(object, key);
  if (!value.is_array()) return out;
  for (const Json& text : value)
    if (text.is_string()) out.push_back(text.get<std::string>());
  return out;
}

Version version_of(const std::string& text) {
  // As two numbers: as text or as a fraction 1.9 would be newer than 1.41.
  Version version;
  const char* end = text.data() + text.size();
  auto [dot, first] = std::from_chars(text.data(), end, version.major);
  if (first == std::errc() && dot != end && *dot == '.') {
    const auto [rest, second] = std::from_chars(dot + 1, end, version.minor);
    if (second == std::errc() && rest == end) return version;
  }
  throw EngineError(Kind::failed, 0, "'" + sanitised(text) + "' is no API version");
}

std::string to_string(Version version) { return std::to_string(version.major) + "." + std::to_string(version.minor); }

std::string label_filter(const std::string& label) { return url_encoded(Json{{"label", Json::array({label})}}.dump()); }

void Turnstile::enter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return free_ > 0; });
  --free_;
}

void Turnstile::leave() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  changed_.notify_one();
}

namespace {

HttpReply raw_exchange(const Options& options, const Call& call, const std::string& path) {
  HttpRequest request;
  request.method = call.method;
  request.path = path;
  request.body = call.body;
  if (call.method == "POST") request.content_type = call.content_type;
  request.timeout = call.timeout;
  request.reply_bytes_max = options.reply_bytes_max;
  request.on_accepted = call.on_accepted;
  request.on_body = call.on_body;
  request.stop = call.stop;
  return exchange(options.socket, options.connect_timeout, request);
}

}  // namespace

Version Engine::Impl::version() {
  const std::lock_guard lock(mutex_);
  if (version_) return *version_;
  Call ping{.method = "HEAD", .path = "/_ping", .timeout = options.ping_timeout};
  HttpReply reply = raw_exchange(options, ping, ping.path);
  if (!reply.headers.contains("api-version")) {
    ping.method = "GET";
    reply = raw_exchange(options, ping, ping.path);
  }
  if (reply.status != 200 || !reply.headers.contains("api-version"))
    throw failure(reply, "the Engine does not answer a ping");
  const Version newest = version_of(reply.headers["api-version"]);
  const Call about{.method = "GET", .path = "/version", .timeout = options.inspect_timeout};
  const HttpReply answer = raw_exchange(options, about, about.path);
  if (answer.status != 200) throw failure(answer, "GET /version");
  server_ = json_of(answer.body, "GET /version");
  const std::string oldest_text = text_of(server_, "MinAPIVersion");
  const Version oldest = oldest_text.empty() ? Version{1, 12} : version_of(oldest_text);
  const Version chosen = std::min(newest, kApiCap);
  if (chosen < kApiFloor || chosen < oldest)
    throw EngineError(Kind::failed, 0,
                      "the Engine speaks API " + to_string(oldest) + " to " + to_string(newest) +
                          ", kbench needs one of " + to_string(kApiFloor) + " to " + to_string(kApiCap));
  version_ = chosen;
  return chosen;
}

Json Engine::Impl::server() {
  version();
  const std::lock_guard lock(mutex_);
  return server_;
}

namespace {

// "client version 1.41 is too old. Minimum supported API version is 1.44, …", or "… is too new".
bool refuses_version(const HttpReply& reply) {
  return reply.status == 400 && reply.body.find("client version ") != reply.body.npos &&
         (reply.body.find(" is too old") != reply.body.npos || reply.body.find(" is too new") != reply.body.npos);
}

}  // namespace

HttpReply Engine::Impl::call(const Call& call) {
  // Always with a version: without one the Engine answers in its newest, and answers change shape. It may be replaced
  // by another version between two calls without a connection that breaks; such a refusal came before anything was
  // done.
  for (const bool last : {false, true}) {
    const std::string path = "/v" + to_string(version()) + call.path;
    try {
      HttpReply reply = raw_exchange(options, call, path);
      if (last || !refuses_version(reply)) return reply;
      forget_version();
    } catch (const EngineError& error) {
      if (error.kind == Kind::unreachable) forget_version();
      throw;
    }
  }
  throw std::logic_error("unreachable");
}

void Engine::Impl::forget_version() {
  const std::lock_guard lock(mutex_);
  version_.reset();
}

EngineError Engine::Impl::failure(const HttpReply& reply, const std::string& what) {
  // Old paths and proxies answer in plain text.
  const Json parsed = Json::parse(reply.body, nullptr, false);
  std::string message = text_of(parsed, "message");
  if (message.empty()) message = reply.body.substr(0, 1000);
  message = what + ": " + sanitised(message) + " (" + std::to_string(reply.status) + ")";
  Kind kind = Kind::failed;
  if (reply.status == 400) kind = Kind::bad_request;
  if (reply.status == 404) kind = Kind::not_found;
  if (reply.status == 409) kind = Kind::conflict;
  if (message.find("no space left on device") != message.npos) kind = Kind::no_space;
  return {kind, reply.status, message};
}

HttpReply Engine::Impl::demand(const Call& call_made) {
  HttpReply reply = call(call_made);
  if ((reply.status >= 200 && reply.status < 300) || reply.status == 304) return reply;
  throw failure(reply, call_made.method + " " + call_made.path.substr(0, call_made.path.find('?')));
}

Json Engine::Impl::json_of(const std::string& text, const std::string& what) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw EngineError(Kind::failed, 0, what + ": the answer is no JSON");
  return parsed;
}

Json Engine::Impl::demand_json(const Call& call_made) {
  return json_of(demand(call_made).body, call_made.method + " " + call_made.path.substr(0, call_made.path.find('?')));
}

Engine::Engine(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}
Engine::~Engine() = default;
const Options& Engine::options() const { return impl_->options; }

void Engine::ping() { impl_->demand({.method = "GET", .path = "/_ping", .timeout = impl_->options.ping_timeout}); }

Info Engine::info() {
  const Json server = impl_->server();
  const Json answer = impl_->demand_json({.method = "GET", .path = "/info", .timeout = impl_->options.inspect_timeout});
  Info info;
  info.api = impl_->version();
  info.engine_version = text_of(server, "Version");
  info.data_root = text_of(answer, "DockerRootDir");
  info.cgroup_version = text_of(answer, "CgroupVersion");
  info.default_runtime = text_of(answer, "DefaultRuntime");
  if (const Json& runtimes = child_of(answer, "Runtimes"); runtimes.is_object())
    for (const auto& item : runtimes.items()) info.runtimes.push_back(item.key());
  info.cdi_spec_dirs = list_of(answer, "CDISpecDirs");
  if (const Json& devices = child_of(answer, "DiscoveredDevices"); devices.is_array())
    for (const Json& device : devices)
      if (text_of(device, "Source") == "cdi") info.cdi_devices.push_back(text_of(device, "ID"));
  info.warnings = list_of(answer, "Warnings");
  for (const auto& [key, what] : {std::pair{"MemoryLimit", "memory"}, {"SwapLimit", "swap"}, {"PidsLimit", "pids"}})
    if (child_of(answer, key) == Json(false)) info.unlimited.emplace_back(what);
  if (const Json& components = child_of(server, "Components"); components.is_array())
    for (const Json& component : components) info.podman = info.podman || text_of(component, "Name") == "Podman Engine";
  return info;
}

void Engine::events(const std::string& label, const std::function<void()>& connected,
                    const std::function<void(const Event&)>& on_event, const std::stop_token& stop) {
  const std::string filters = url_encoded(Json{{"label", {label}}, {"type", {"container"}}}.dump());
  JsonSplitter splitter(impl_->options.build_message_bytes_max, [&](std::string_view object) {
    const Json parsed = Json::parse(object, nullptr, false);
    const Json& actor = child_of(parsed, "Actor");
    on_event({text_of(parsed, "Action"), text_of(actor, "ID"), texts_of(actor, "Attributes")});
  });
  Call call{.method = "GET", .path = "/events?filters=" + filters};
  call.on_accepted = connected;
  call.on_body = [&](std::string_view bytes) { splitter.feed(bytes); };
  call.stop = stop;
  try {
    impl_->demand(call);
  } catch (const EngineError& error) {
    if (error.kind == Kind::cancelled) return;
    throw;
  } catch (const BadStream& error) {
    throw EngineError(Kind::failed, 0, std::string("events: ") + error.what());
  }
  impl_->forget_version();
  throw EngineError(Kind::unreachable, 0, "the Engine ended its events");
}

}  // namespace kbench::engine
