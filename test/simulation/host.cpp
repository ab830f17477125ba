#include "test/simulation/host.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "daemon/grader/receiver.h"
#include "test/simulation/census.h"
#include "test/simulation/fibers.h"

namespace kbench::sim {

using engine::EngineError;
using Kind = EngineError::Kind;

Host* Host::current = nullptr;

namespace {

void write(const std::string& path, const std::string& text) {
  Host::current->container_writes = true;
  std::error_code ignored;  // the folder may be gone: its attempt has ended
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::ofstream(path) << text;
  Host::current->container_writes = false;
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

Host::Run run_of(const Host::Box& box) {
  return {label(box, "kbench.submission"), std::atoi(label(box, "kbench.attempt").c_str())};
}

constexpr const char* kBases[] = {"kbench/base:cpu", "kbench/base:cuda"};

}  // namespace

Host::Host() {
  for (const char* base : kBases) add_image({base}, {});
}

bool Host::is_down() const { return now_ms() < down_until_ms_; }

void Host::restart() {
  on_restart();
  down_until_ms_ = now_ms() + chance().magnitude(20'000);
  ++disturbances;
  settle();
  if (chance().one_in(2)) later_.clear();
  if (chance().one_in(2)) return;
  for (auto& [id, box] : boxes)  // without live-restore
    if (box.facts.running()) {
      box.result = false;
      box.facts.exit_code = 137;
      box.facts.status = "exited";
    }
}

void Host::later(std::function<void()> what) { later_.emplace(now_ms() + chance().magnitude(60'000), std::move(what)); }

void Host::settle() {
  for (auto& [id, box] : boxes)
    if (box.facts.running() && box.ends_ms != 0 && box.ends_ms <= now_ms()) finish(box);
  late_ = true;
  while (!is_down() && !later_.empty() && later_.begin()->first <= now_ms()) {
    const auto what = later_.extract(later_.begin());
    try {
      what.mapped()();
    } catch (const EngineError&) {  // nobody hears of it
    }
  }
  late_ = false;
  for (const char* base : kBases)
    if (now_ms() >= bases_back_ms_ && !image(base)) add_image({base}, {});
}

// ---- Images.

engine::Image* Host::image(const std::string& id_or_tag) {
  for (auto& [id, image] : images)
    if (id == id_or_tag || std::ranges::count(image.tags, id_or_tag) > 0) return &image;
  return nullptr;
}

std::string Host::add_image(const std::vector<std::string>& tags, const std::map<std::string, std::string>& labels) {
  for (auto& [id, image] : images)
    std::erase_if(image.tags, [&](const std::string& tag) { return std::ranges::count(tags, tag) > 0; });
  const std::string id = "sha256:" + std::to_string(++made);
  images[id] = {id, tags, labels, wall_ms() / 1000, 1 << 30};
  return id;
}

void Host::remove_image(const std::string& id_or_tag) {
  engine::Image* there = image(id_or_tag);
  if (!there) return;
  if (there->tags.size() > 1 && there->id != id_or_tag) {
    std::erase(there->tags, id_or_tag);
    return;
  }
  for (const auto& [id, box] : boxes)
    if (box.facts.image == there->id) throw EngineError(Kind::conflict, 409, box.facts.name + " uses " + there->id);
  if (!late_) images_we_removed.insert(there->id);
  images.erase(std::string(there->id));
}

// What the Engine has of a build that was cut off: a step's image, sometimes with a step's container.
void Host::leave_scraps(const std::map<std::string, std::string>& labels) {
  const std::string image = add_image({}, labels);
  if (chance().one_in(2)) return;
  Box step;
  step.facts = {"c" + std::to_string(++made), "eager_hopper", image, labels, "exited", 137, false, ""};
  step.facts.name += std::to_string(made);
  boxes[step.facts.id] = step;
}

// Somebody's `docker image prune --all`.
void Host::prune_one() {
  if (images.empty()) return;
  auto any = images.begin();
  std::advance(any, static_cast<long>(chance().below(images.size())));
  for (const auto& [id, box] : boxes)
    if (box.facts.image == any->first) return;
  images.erase(any);
  bases_back_ms_ = now_ms() + chance().magnitude(60'000);
}

// ---- Containers.

Host::Box* Host::find(const std::string& id_or_name) {
  for (auto& [id, box] : boxes)
    if (id == id_or_name || box.facts.name == id_or_name) return &box;
  return nullptr;
}

void Host::start(Box& box) {
  if (box.facts.status != "created") fail(box.facts.name + " was started when it was " + box.facts.status);
  box.facts.status = "running";
  const std::string kind = label(box, "kbench.kind");
  box.result = !strikes(kind, "dies", faults.dies);
  const bool hangs = strikes(kind, "hangs", is_focused("kill") ? 0.8 : faults.hangs);
  box.ends_ms = hangs ? 0 : now_ms() + chance().magnitude(20'000);
  if (strikes(kind, "stuck", odds("remove", "stuck", odds("kill", "stuck", faults.stuck))))
    box.unkillable_until_ms = now_ms() + 1'000 + static_cast<std::int64_t>(chance().below(100'000));
  if (hangs && kind == "compile") bad_verdicts[run_of(box)].insert("timeout");
  if (kind != "measure") return;
  for (const engine::DeviceRequest& request : box.spec.device_requests)
    for (const std::string& gpu : request.ids) {
      box.holds.push_back(gpu);
      if (!strikes("measure", "gpu-lost", faults.gpus)) continue;
      gpu_lost_until_ms[gpu] = now_ms() + chance().magnitude(100'000);
      box.result = false;
    }
  for (std::size_t i = 0; i + 1 < box.spec.command.size(); ++i)
    if (box.spec.command[i] == "--uid-base") box.holds.push_back("uids " + box.spec.command[i + 1]);
  for (const auto& [id, other] : boxes) {
    if (&other == &box || !other.facts.running()) continue;
    for (const std::string& held : other.holds)
      for (const std::string& wanted : box.holds)
        if (held == wanted) fail(box.facts.name + " was started on " + held + ", where " + other.facts.name + " runs");
  }
}

void Host::kill(Box& box, const char* call) {
  if (!box.facts.running()) return;
  if (now_ms() < box.unkillable_until_ms) {
    if (call) count(call, "stuck");
    throw EngineError(Kind::failed, 500, "tried to kill container, but did not receive an exit event");
  }
  box.facts.exit_code = 137;
  box.facts.status = "exited";
}

// What the verifier leaves behind. On a full disk its last file is cut, and it says so by its status.
void Host::finish(Box& box) {
  box.facts.status = "exited";
  box.facts.exit_code = box.result ? 0 : static_cast<int>(chance().below(140));
  if (!box.result) return;
  const std::string kind = label(box, "kbench.kind");
  const bool full = strikes(kind, "full", faults.folder);
  const auto write_last = [&](const std::string& path, const std::string& text) {
    write(path, full ? text.substr(0, chance().below(text.size())) : text);
    if (full) box.facts.exit_code = 1;
  };
  if (kind == "reference") {
    const std::string device = box.spec.command.back().find("cuda") == std::string::npos ? "cpu" : "cuda";
    write_last(source_of(box, "/out") + "/reference-" + device + ".so", "reference");
  } else if (kind == "compile") {
    const bool ok = !chance().one_in(8);
    if (ok)
      write(source_of(box, "/out") + "/artefact/submission.so", "elf");
    else
      bad_verdicts[run_of(box)].insert("compile_error");
    box.facts.exit_code = ok ? 0 : 1;
    write_last(source_of(box, "/out") + "/compile.json",
               std::string(R"({"ok":)") + (ok ? "true" : "false") +
                   R"(,"exit_code":0,"seconds":0.1,"log":"","compiler":"g++"})");
  } else {
    const std::string out = source_of(box, "/kbench/out");
    if (strikes("measure", "ill", faults.ill)) {
      write(out + "/infra_error.json", R"({"cause":"device","message":"it looks ill"})");
      box.facts.exit_code = 3;
      return;
    }
    const double reward = ++measured_;
    rewards[run_of(box)] = reward;
    write(out + "/events.ndjson",
          "{\"seq\":1,\"type\":\"started\"}\n{\"seq\":2,\"type\":\"verdict\",\"verdict\":\"correct\"}\n");
    write(out + "/details.json", R"({"verdict":"correct","reason":"","metric":"GB/s","flags":[]})");
    write_last(out + "/reward.json", "{\"reward\":" + std::to_string(reward) + "}");
  }
}

// ---- GPUs.

bool Host::is_lost(const std::string& gpu) const {
  const auto found = gpu_lost_until_ms.find(gpu);
  return found != gpu_lost_until_ms.end() && now_ms() < found->second;
}

std::vector<gpu::Gpu> Inventory::list() {
  std::vector<gpu::Gpu> gpus = {{"GPU-0", "H200", "1", 0, 1}, {"GPU-1", "H200", "1", 1, 1}};
  const double absent = Host::current->faults.absent;
  if (absent > 0 && strikes("gpu", "absent", absent)) gpus.erase(gpus.begin() + chance().one_in(2));
  return gpus;
}

std::optional<std::string> Inventory::fault(const std::string& uuid) {
  Host& host = *Host::current;
  perhaps_yield();
  if (strikes("gpu", "lost", host.faults.gpus)) host.gpu_lost_until_ms[uuid] = now_ms() + chance().magnitude(100'000);
  if (host.is_lost(uuid)) return "it is lost";
  return {};
}

int Inventory::processes(const std::string& uuid) {
  perhaps_yield();
  std::int64_t& until = haunted_until_ms_[uuid];
  if (strikes("gpu", "haunted", Host::current->faults.gpus)) until = now_ms() + chance().magnitude(20'000);
  return now_ms() < until ? 1 : 0;
}

std::optional<gpu::Inventory::Xid> Inventory::next_xid(std::chrono::milliseconds patience) {
  sleep_ms(patience.count() * 20);
  const double faults = Host::current->faults.gpus / 4;
  if (strikes("gpu", "xid-hardware", faults)) return Xid{"GPU-1", 79};
  if (strikes("gpu", "xid-kernel", faults)) return Xid{"GPU-0", 13};
  return {};
}

// ---- A call on its way.

Call::Call(const char* name, bool makes) : name_(name) {
  Host& host = *Host::current;
  const Host::Faults& faults = host.faults;
  if (chance().with(odds(name_, "down", 0))) host.restart();
  disturbances_ = host.disturbances;
  travel();
  if (chance().with(faults.pruned)) host.prune_one();
  if (is_cut()) throw lost("cut");
  if (host.is_down()) {
    count(name_, "down");
    throw EngineError(Kind::unreachable, 0, std::string(name_) + ": no Engine");
  }
  if (strikes(name_, "refused", faults.refused)) throw EngineError(Kind::failed, 500, std::string(name_) + ": refused");
  if (makes && strikes(name_, "full", faults.full))
    throw EngineError(Kind::no_space, 500, std::string(name_) + ": no space");
  if (chance().with(odds(name_, "undone", faults.lost / 2))) throw lost("undone");
}

void Call::travel() {
  Host& host = *Host::current;
  sleep_ms(static_cast<std::int64_t>(chance().below(10)));
  if (strikes(name_, "slow", host.faults.slow / 2)) sleep_ms(chance().magnitude(60'000));
  if (chance().with(odds(name_, "cut", host.faults.restarts))) host.restart();
  host.settle();
}

bool Call::is_cut() const { return Host::current->disturbances != disturbances_; }

EngineError Call::lost(const char* how) const {
  count(name_, how);
  const bool broke = is_cut() || chance().one_in(2);
  return {broke ? Kind::unreachable : Kind::timeout, 0, std::string(name_) + ": no answer"};
}

void Call::change(const std::function<void()>& what) {
  Host& host = *Host::current;
  if (chance().with(odds(name_, "late", host.faults.lost / 4))) {
    host.later(what);
    throw lost("late");
  }
  what();
  loses_answer_ = chance().with(odds(name_, "done", host.faults.lost / 4));
}

void Call::answered() {
  travel();
  if (is_cut()) throw lost("cut");
  if (loses_answer_) throw lost("done");
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
  bool was_disturbed = false;
};

Engine::Engine(Options options) : impl_(std::make_shared<Impl>(Impl{std::move(options)})) {}
Engine::~Engine() = default;
const Options& Engine::options() const { return impl_->options; }

Info Engine::info() {
  sim::Call call("info");
  Info info;
  info.api = kApiFloor;
  info.data_root = "/";
  info.runtimes = {"nvidia"};
  call.answered();
  return info;
}

std::optional<Image> Engine::image(const std::string& reference) {
  sim::Call call("image");
  std::optional<Image> found;
  if (const Image* image = host().image(reference)) found = *image;
  call.answered();
  return found;
}

std::vector<Image> Engine::images(const std::string& label) {
  sim::Call call("images");
  std::vector<Image> all;
  for (const auto& [id, image] : host().images)  // coro-lint: ok, a reference
    if (has_label(image.labels, label)) all.push_back(image);
  call.answered();
  return all;
}

void Engine::remove_image(const std::string& reference) {
  sim::Call call("remove_image");
  call.change([reference] { host().remove_image(reference); });
  call.answered();
}

std::string Engine::build(const BuildSpec& spec, const std::function<void(std::string_view)>&,
                          const std::stop_token& stop) {
  sim::Call call("build", true);
  const auto check_base = [&] {
    if (host().image(spec.args.at("KBENCH_BASE"))) return;
    sim::count("build", "no-base");
    throw EngineError(Kind::failed, 200, "build: no such image: " + spec.args.at("KBENCH_BASE"));
  };
  check_base();
  sim::sleep_ms(sim::chance().magnitude(10'000));
  if (stop.stop_requested() || call.is_cut()) {
    host().leave_scraps(spec.labels);
    if (stop.stop_requested()) throw EngineError(Kind::cancelled, 0, "build: stopped");
  } else {
    check_base();
    call.change([spec] { host().add_image(spec.tags, spec.labels); });
  }
  const std::string id = host().image(spec.tags.front()) ? host().image(spec.tags.front())->id : "";
  call.answered();
  return id;
}

std::string Engine::create(const ContainerSpec& spec) {
  sim::Call call("create", true);
  for (const Mount& mount : spec.mounts)
    if (mount.source.empty()) throw EngineError(Kind::bad_request, 400, "a mount without a source");
  if (!host().images.contains(spec.image)) {
    if (host().images_we_removed.contains(spec.image)) sim::fail(spec.name + ": its image was removed by us");
    sim::count("create", "no-image");
    throw EngineError(Kind::not_found, 404, "no such image: " + spec.image);
  }
  if (Host::Box* there = host().find(spec.name)) {
    if (there->spec.labels != spec.labels) throw EngineError(Kind::conflict, 409, spec.name + " is somebody else's");
    const bool fresh = there->facts.status == "created" && there->spec.image == spec.image;
    if (fresh) return there->facts.id;
    host().kill(*there, nullptr);
    host().boxes.erase(std::string(there->facts.id));
  }
  const std::string id = "c" + std::to_string(++host().made);
  call.change([spec, id, life = host().life] {
    if (host().find(spec.name) || !host().images.contains(spec.image)) return;
    Host::Box box;
    box.spec = spec;
    box.life = life;
    box.facts = {id, spec.name, spec.image, spec.labels, "created", 0, false, ""};
    host().boxes[id] = box;
  });
  call.answered();
  return id;
}

std::optional<Container> Engine::inspect(const std::string& id_or_name) {
  sim::Call call("inspect");
  std::optional<Container> found;
  if (const Host::Box* box = host().find(id_or_name)) found = box->facts;
  call.answered();
  return found;
}

std::vector<Container> Engine::containers(const std::string& wanted) {
  sim::Call call("containers");
  std::vector<Container> all;
  for (const auto& [id, box] : host().boxes)  // coro-lint: ok, a reference
    if (has_label(box.facts.labels, wanted)) all.push_back(box.facts);
  call.answered();
  return all;
}

Run Engine::start(const std::string& id) {
  auto state = std::make_unique<Run::State>();
  state->id = id;
  sim::Call call("start");
  box_of(id);
  try {
    call.change([id] {
      if (Host::Box* box = host().find(id); box && box->facts.status == "created") host().start(*box);
    });
    call.answered();
  } catch (const EngineError&) {
    // The real client looks after it for a while.
    const Host::Box* box = host().find(id);
    if (!box || box->facts.status == "created" || sim::chance().one_in(2)) throw;
    sim::count("start", "found");
    state->was_disturbed = true;
  }
  return Run(std::move(state));
}

void Engine::kill(const std::string& id) {
  sim::Call call("kill");
  call.change([id] {
    if (Host::Box* box = host().find(id)) host().kill(*box, "kill");
  });
  call.answered();
}

void Engine::remove(const std::string& id) {
  sim::Call call("remove");
  call.change([id] {
    Host::Box* box = host().find(id);
    if (!box) return;
    host().kill(*box, "remove");
    host().boxes.erase(std::string(box->facts.id));
  });
  call.answered();
}

std::string Engine::logs(const std::string& id) {
  sim::Call call("logs");
  box_of(id);
  call.answered();
  return "log\n";
}

void Engine::events(const std::string&, const std::function<void()>& connected,
                    const std::function<void(const Event&)>&, const std::stop_token& stop) {
  sim::Call call("events");
  connected();
  while (!stop.stop_requested()) {
    if (call.is_cut()) call.answered();
    if (sim::strikes("events", "broken", host().faults.lost / 16))
      throw EngineError(Kind::unreachable, 0, "events: the connection broke");
    sim::sleep_ms(1'000);
  }
}

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::Run(Run&&) noexcept = default;
Run::~Run() = default;
bool Run::disturbed() const { return state_->was_disturbed; }

// A connection that breaks, or an Engine that does not say how it is, costs time and certainty, no more.
std::optional<Container> Run::wait(milliseconds patience, const std::stop_token& stop) {
  const std::int64_t until = sim::now_ms() + patience.count();
  for (;;) {
    std::int64_t pause = 200 + static_cast<std::int64_t>(sim::chance().below(800));
    if (host().disturbances != state_->disturbances) {
      sim::count("wait", "cut");
      state_->disturbances = host().disturbances;
      state_->was_disturbed = true;
    }
    if (!host().is_down()) {
      host().settle();
      const Host::Box& box = box_of(state_->id);
      const Host::Faults& faults = host().faults;
      const bool is_lost = sim::strikes("wait", box.facts.running() ? "undone" : "done", faults.lost / 8);
      if (is_lost || sim::strikes("wait", "refused", faults.refused / 8)) {
        state_->was_disturbed = true;
        pause = sim::chance().magnitude(5'000);
      } else if (!box.facts.running()) {
        return box.facts;
      } else if (sim::strikes("wait", "slow", faults.slow / 8)) {
        pause = sim::chance().magnitude(10'000);
      }
    }
    if (stop.stop_requested() || sim::now_ms() >= until) return std::nullopt;
    sim::sleep_ms(std::min<std::int64_t>(pause, until - sim::now_ms() + 1));
  }
}

}  // namespace kbench::engine

namespace kbench::grader {

class Receiver::Server {};
Receiver::Receiver(const std::string&, EventLog&, const ReceiverLimits&) {}
Receiver::~Receiver() = default;

}  // namespace kbench::grader
