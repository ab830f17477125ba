#include "test/simulation/host.h"

#include <filesystem>
#include <fstream>

#include "daemon/grader/receiver.h"
#include "test/simulation/fibers.h"

namespace kbench::sim {

using engine::EngineError;
using Kind = EngineError::Kind;

Host* Host::current = nullptr;

namespace {

void write(const std::string& path, const std::string& text) {
  std::error_code ignored;  // the folder may be gone: its attempt has ended
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::ofstream(path) << text;
}

std::string source_of(const Host::Box& box, const std::string& target) {
  for (const engine::Mount& mount : box.spec.mounts)
    if (mount.target == target) return mount.source;
  return {};
}

std::string label(const Host::Box& box, const char* name) {
  const auto found = box.spec.labels.find(name);
  return found == box.spec.labels.end() ? "" : found->second;
}

}  // namespace

bool Host::is_down() const { return now_ms() < down_until_ms_; }

void Host::enter(const char* call, bool makes) {
  lose_answer_ = false;
  sleep_ms(static_cast<std::int64_t>(chance().below(20)));
  if (chance().with(faults.slow)) sleep_ms(chance().magnitude(60'000));
  if (chance().with(faults.restarts)) {
    down_until_ms_ = now_ms() + chance().magnitude(20'000);
    ++disturbances;
    settle();
    if (chance().one_in(2))  // without live-restore
      for (auto& [id, box] : boxes)
        if (box.facts.running()) {
          box.result = false;
          box.facts.exit_code = 137;
          box.facts.status = "exited";
        }
  }
  settle();
  if (is_down()) throw EngineError(Kind::unreachable, 0, std::string(call) + ": no Engine");
  if (chance().with(faults.refused)) throw EngineError(Kind::failed, 500, std::string(call) + ": refused");
  if (makes && chance().with(faults.full)) throw EngineError(Kind::no_space, 500, std::string(call) + ": no space");
  if (!chance().with(faults.lost)) return;
  if (chance().one_in(2)) throw EngineError(Kind::unreachable, 0, std::string(call) + ": the connection broke");
  lose_answer_ = true;
}

void Host::leave(const char* call) {
  const bool lost = lose_answer_;
  lose_answer_ = false;
  perhaps_yield();
  if (lost)
    throw EngineError(chance().one_in(2) ? Kind::unreachable : Kind::timeout, 0, std::string(call) + ": no answer");
}

Host::Box* Host::find(const std::string& id_or_name) {
  for (auto& [id, box] : boxes)
    if (id == id_or_name || box.facts.name == id_or_name) return &box;
  return nullptr;
}

void Host::settle() {
  for (auto& [id, box] : boxes)
    if (box.facts.running() && box.ends_ms != 0 && box.ends_ms <= now_ms()) finish(box);
}

void Host::start(Box& box) {
  if (box.facts.status != "created") fail(box.facts.name + " was started when it was " + box.facts.status);
  box.facts.status = "running";
  const auto nothing = [&](double probability) { return chance().with(probability); };
  box.result = !nothing(faults.dies);
  box.ends_ms = nothing(faults.hangs) ? 0 : now_ms() + chance().magnitude(20'000);
  if (nothing(faults.stuck)) box.unkillable_until_ms = now_ms() + chance().magnitude(100'000);
  if (label(box, "kbench.kind") != "measure") return;
  for (const engine::DeviceRequest& request : box.spec.device_requests)
    box.holds.insert(box.holds.end(), request.ids.begin(), request.ids.end());
  for (std::size_t i = 0; i + 1 < box.spec.command.size(); ++i)
    if (box.spec.command[i] == "--uid-base") box.holds.push_back("uids " + box.spec.command[i + 1]);
  for (const auto& [id, other] : boxes) {
    if (&other == &box || !other.facts.running()) continue;
    for (const std::string& held : other.holds)
      for (const std::string& wanted : box.holds)
        if (held == wanted) fail(box.facts.name + " was started on " + held + ", where " + other.facts.name + " runs");
  }
}

void Host::kill(Box& box) {
  if (!box.facts.running()) return;
  if (now_ms() < box.unkillable_until_ms)
    throw EngineError(Kind::failed, 500, "tried to kill container, but did not receive an exit event");
  box.facts.exit_code = 137;
  box.facts.status = "exited";
}

// What the verifier leaves behind.
void Host::finish(Box& box) {
  box.facts.status = "exited";
  box.facts.exit_code = box.result ? 0 : static_cast<int>(chance().below(140));
  if (!box.result) return;
  const std::string kind = label(box, "kbench.kind");
  if (kind == "reference") {
    const std::string device = box.spec.command.back().find("cuda") == std::string::npos ? "cpu" : "cuda";
    write(source_of(box, "/out") + "/reference-" + device + ".so", "reference");
  } else if (kind == "compile") {
    const bool ok = !chance().one_in(8);
    if (ok) write(source_of(box, "/out") + "/artefact/submission.so", "elf");
    write(source_of(box, "/out") + "/compile.json", std::string(R"({"ok":)") + (ok ? "true" : "false") +
                                                        R"(,"exit_code":0,"seconds":0.1,"log":"","compiler":"g++"})");
    box.facts.exit_code = ok ? 0 : 1;
  } else {
    const std::string out = source_of(box, "/kbench/out");
    if (chance().with(faults.ill)) {
      write(out + "/infra_error.json", R"({"cause":"device","message":"it looks ill"})");
      box.facts.exit_code = 3;
      return;
    }
    const double reward = ++measured_;
    rewards[{label(box, "kbench.submission"), std::atoi(label(box, "kbench.attempt").c_str())}] = reward;
    write(out + "/events.ndjson",
          "{\"seq\":1,\"type\":\"started\"}\n{\"seq\":2,\"type\":\"verdict\",\"verdict\":\"correct\"}\n");
    write(out + "/details.json", R"({"verdict":"correct","reason":"","metric":"GB/s","flags":[]})");
    write(out + "/reward.json", "{\"reward\":" + std::to_string(reward) + "}");
  }
}

std::vector<gpu::Gpu> Inventory::list() { return {{"GPU-0", "H200", "1", 0, 1}, {"GPU-1", "H200", "1", 1, 1}}; }

std::optional<gpu::Inventory::Xid> Inventory::next_xid(std::chrono::milliseconds patience) {
  sleep_ms(patience.count() * 20);
  return {};
}

}  // namespace kbench::sim

// ---- engine::Engine as its header promises it, over the simulated host.

namespace kbench::engine {

using sim::Host;
using Kind = EngineError::Kind;

namespace {

Host& host() { return *Host::current; }

bool has_label(const std::map<std::string, std::string>& labels, const std::string& wanted) {
  const auto equals = wanted.find('=');
  const auto found = labels.find(wanted.substr(0, equals));
  return found != labels.end() && (equals == std::string::npos || found->second == wanted.substr(equals + 1));
}

Host::Box& box_of(const std::string& id) {
  Host::Box* box = host().find(id);
  if (!box) throw EngineError(Kind::not_found, 404, "no such container: " + id);
  return *box;
}

}  // namespace

struct Engine::Impl {
  Options options;
};

struct Run::State {
  std::string id;
  std::uint64_t disturbances = host().disturbances;
};

Engine::Engine(Options options) : impl_(std::make_shared<Impl>(Impl{std::move(options)})) {}
Engine::~Engine() = default;
const Options& Engine::options() const { return impl_->options; }

void Engine::ping() {
  host().enter("ping");
  host().leave("ping");
}

Info Engine::info() {
  host().enter("info");
  Info info;
  info.api = kApiFloor;
  info.data_root = "/";
  info.runtimes = {"nvidia"};
  host().leave("info");
  return info;
}

std::optional<Image> Engine::image(const std::string& reference) {
  host().enter("image");
  std::optional<Image> found;
  if (host().images.contains(reference)) found = Image{"sha256:" + reference, {reference}, {}, 0, 0};
  host().leave("image");
  return found;
}

std::vector<Image> Engine::images(const std::string&) { return {}; }
void Engine::remove_image(const std::string&) {}

std::string Engine::build(const BuildSpec& spec, const std::function<void(std::string_view)>&,
                          const std::stop_token& stop) {
  host().enter("build", true);
  sim::sleep_ms(sim::chance().magnitude(10'000));
  if (stop.stop_requested()) throw EngineError(Kind::cancelled, 0, "build: stopped");
  for (const std::string& tag : spec.tags) host().images.insert(tag);
  host().leave("build");
  return "sha256:" + spec.tags.front();
}

std::string Engine::create(const ContainerSpec& spec) {
  host().enter("create", true);
  if (Host::Box* there = host().find(spec.name)) {
    if (there->spec.labels != spec.labels) throw EngineError(Kind::conflict, 409, spec.name + " is somebody else's");
    const bool fresh = there->facts.status == "created" && there->spec.image == spec.image;
    if (fresh) return there->facts.id;
    host().kill(*there);
    host().boxes.erase(there->facts.id);
  }
  const std::string id = "c" + std::to_string(++host().made);
  for (const Mount& mount : spec.mounts)
    if (mount.source.empty()) throw EngineError(Kind::bad_request, 400, "a mount without a source");
  Host::Box box;
  box.spec = spec;
  box.facts = {id, spec.name, spec.image, spec.labels, "created", 0, false, ""};
  host().boxes[id] = box;
  host().leave("create");
  return id;
}

std::optional<Container> Engine::inspect(const std::string& id_or_name) {
  host().enter("inspect");
  std::optional<Container> found;
  if (const Host::Box* box = host().find(id_or_name)) found = box->facts;
  host().leave("inspect");
  return found;
}

std::vector<Container> Engine::containers(const std::string& wanted) {
  host().enter("containers");
  std::vector<Container> all;
  for (const auto& [id, box] : host().boxes)
    if (has_label(box.facts.labels, wanted)) all.push_back(box.facts);
  host().leave("containers");
  return all;
}

Run Engine::start(const std::string& id) {
  host().enter("start");
  auto state = std::make_unique<Run::State>();
  state->id = id;
  host().start(box_of(id));
  host().leave("start");
  return Run(std::move(state));
}

void Engine::kill(const std::string& id) {
  host().enter("kill");
  if (Host::Box* box = host().find(id)) host().kill(*box);
  host().leave("kill");
}

void Engine::remove(const std::string& id) {
  host().enter("remove");
  if (Host::Box* box = host().find(id)) {
    host().kill(*box);
    host().boxes.erase(box->facts.id);
  }
  host().leave("remove");
}

std::string Engine::logs(const std::string& id) {
  host().enter("logs");
  box_of(id);
  host().leave("logs");
  return "log\n";
}

void Engine::events(const std::string&, const std::function<void()>& connected,
                    const std::function<void(const Event&)>&, const std::stop_token& stop) {
  host().enter("events");
  const std::uint64_t before = host().disturbances;
  connected();
  while (!stop.stop_requested() && host().disturbances == before) sim::sleep_ms(1'000);
  if (!stop.stop_requested()) throw EngineError(Kind::unreachable, 0, "events: the connection broke");
}

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::Run(Run&&) noexcept = default;
Run::~Run() = default;
bool Run::disturbed() const { return host().disturbances != state_->disturbances; }

std::optional<Container> Run::wait(milliseconds patience, const std::stop_token& stop) {
  const std::int64_t until = sim::now_ms() + patience.count();
  for (;;) {
    if (!host().is_down()) {
      host().settle();
      const Host::Box& box = box_of(state_->id);
      if (!box.facts.running()) return box.facts;
    }
    if (stop.stop_requested() || sim::now_ms() >= until) return std::nullopt;
    sim::sleep_ms(
        std::min<std::int64_t>(200 + static_cast<std::int64_t>(sim::chance().below(800)), until - sim::now_ms() + 1));
  }
}

}  // namespace kbench::engine

namespace kbench::grader {

class Receiver::Server {};
Receiver::Receiver(const std::string&, EventLog&, const ReceiverLimits&) {}
Receiver::~Receiver() = default;

}  // namespace kbench::grader
