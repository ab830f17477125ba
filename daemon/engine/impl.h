// What the parts of the client share. Internal to daemon/engine.
#pragma once

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/engine/engine.h"
#include "daemon/engine/transport.h"

namespace kbench::engine {

using Json = nlohmann::json;
using Kind = EngineError::Kind;

// Tolerant reading: a missing field, null or another type is the default. Answers change shape between API versions.
std::string text_of(const Json& object, const char* key);
std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise = 0);
bool flag_of(const Json& object, const char* key);
const Json& child_of(const Json& object, const char* key);  // null when absent
std::map<std::string, std::string> texts_of(const Json& object, const char* key);
std::vector<std::string> list_of(const Json& object, const char* key);

Version version_of(const std::string& text);  // "1.41"; throws EngineError failed
std::string to_string(Version version);
std::string label_filter(const std::string& label);  // the encoded value of `filters`

struct Call {
  std::string method, path;  // path without the version
  std::string body{}, content_type = "application/json";
  milliseconds timeout{0};
  std::function<void()> on_accepted{};
  std::function<void(std::string_view)> on_body{};
  std::stop_token stop{};
};

// At most `max` mutating calls at a time.
class Turnstile {
 public:
  explicit Turnstile(int max) : free_(max) {}
  class Pass {
   public:
    explicit Pass(Turnstile& owner) : owner_(owner) { owner_.enter(); }
    ~Pass() { owner_.leave(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Turnstile& owner_;
  };

 private:
  void enter();
  void leave();
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
};

struct Engine::Impl {
  explicit Impl(Options engine_options) : options(std::move(engine_options)), changes(options.changes_max) {}
  const Options options;
  Turnstile changes;

  // Any status comes back; throws only when there was no whole answer.
  HttpReply call(const Call& call);
  // 2xx and 304 come back; anything else is thrown as `failure` makes it.
  HttpReply demand(const Call& call);
  Json demand_json(const Call& call);
  Json json_of(const std::string& text, const std::string& what);
  EngineError failure(const HttpReply& reply, const std::string& what);

  std::optional<Container> inspect(const std::string& id_or_name);
  std::optional<Json> inspect_json(const std::string& id_or_name);
  void remove(const std::string& id);
  std::string make_once(const ContainerSpec& spec, const std::string& body,
                        std::string& warning);  // the container's id
  std::string adopt(const ContainerSpec& spec);

  Version version();      // negotiates when due
  void forget_version();  // makes it due: the Engine may come back as another version
  Json server();          // GET /version of the last negotiation

 private:
  std::mutex mutex_;
  std::optional<Version> version_;
  Json server_;
};

Container container_of(const Json& inspected);

// The Dockerfile with the labels at the beginning of every stage. Throws bad_request for a label that needs quotes.
std::string labelled(const std::string& dockerfile, const std::map<std::string, std::string>& labels);

}  // namespace kbench::engine
