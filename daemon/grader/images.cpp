#include "daemon/grader/images.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/grader/files.h"
#include "daemon/grader/specs.h"

namespace kbench::grader {

using engine::EngineError;
using Kind = EngineError::Kind;

namespace {

constexpr char kRecipeVersion[] = "1";  // of how images are built here; part of every image's name

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What enters an image, in one hash.
std::string key_of(const std::string& kind, const std::string& tar, const std::map<std::string, std::string>& args,
                   const std::string& more) {
  std::string all = std::string(kRecipeVersion) + "\n" + kind + "\n" + more + "\n" + sha256_hex(tar) + "\n";
  for (const auto& [name, value] : args) all.append(name).append("=").append(value).append("\n");
  return sha256_hex(all);
}

std::vector<engine::TarEntry> context_of(const std::string& folder) {
  try {
    return engine::read_folder(folder);
  } catch (const engine::BadTar& fault) {
    throw InfraFault("task", folder + ": " + fault.what(), true);
  }
}

}  // namespace

// How a build that several wait for has ended. Its error in parts: an exception object shared by threads would be one
// more thing to prove safe.
struct Images::Flight {
  bool done = false, failed = false;
  std::optional<Kind> engine;  // an EngineError's kind
  std::string cause, message;
  bool final = false;

  void rethrow() const {
    if (engine) throw EngineError(*engine, 0, message);
    throw InfraFault(cause, message, final);
  }
};

Images::Images(const Options& options, WorkFolder& work_folder, engine::Engine& engine, Containers& containers,
               const std::atomic<gpu::Mode>& mode, const gpu::AttachOptions& attach, std::string seccomp,
               std::function<void(const std::string&)> log)
    : options_(options),
      work_folder_(work_folder),
      engine_(engine),
      containers_(containers),
      mode_(mode),
      attach_(attach),
      seccomp_(std::move(seccomp)),
      log_(std::move(log)) {}

Images::Pinned::Pinned(Images& owner, std::string image) : owner_(&owner), id_(std::move(image)) {
  const std::lock_guard lock(owner_->mutex_);
  ++owner_->pins_[id_];
  owner_->used_s_[id_] = now_s();
}

Images::Pinned::Pinned(Pinned&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), id_(std::move(other.id_)) {}

Images::Pinned::~Pinned() {
  if (!owner_) return;
  const std::lock_guard lock(owner_->mutex_);
  owner_->used_s_[id_] = now_s();
  if (--owner_->pins_[id_] == 0) owner_->pins_.erase(id_);
}

std::string Images::base(const std::string& device) {
  const std::string& name = device == "cuda" ? options_.base_cuda : options_.base_cpu;
  const std::optional<engine::Image> image = engine_.image(name);
  if (!image) throw InfraFault("image", name + " is missing; scripts/build-base " + device + " makes it");
  return image->id;
}

Images::Pinned Images::environment(const Task& task, const std::string& device, const std::stop_token& stop) {
  Recipe recipe{"env", "", context_of(task.folder + "/environment"), {{"KBENCH_BASE", base(device)}}};
  recipe.key = key_of(recipe.kind, engine::write_tar(recipe.context), recipe.args, "");
  return get(recipe, stop, [](Recipe&) {});
}

Images::Pinned Images::judge(const Task& task, const std::string& device, std::uint32_t uid,
                             const std::stop_token& stop) {
  const std::string base_id = base(device);
  Recipe recipe{"judge", "", context_of(task.folder + "/tests"), {{"KBENCH_BASE", base_id}, {"KBENCH_DEVICE", device}}};
  recipe.key =
      key_of(recipe.kind, engine::write_tar(recipe.context), recipe.args, device == "cuda" ? options_.gpu_arch : "");
  return get(recipe, stop, [&](Recipe& made) {
    // In a container of ours, not by RUN: it is bounded, has no network, and gets the toolchain where that comes by
    // mounts.
    const std::string file = "reference-" + device + ".so";
    const bool there =
        std::any_of(made.context.begin(), made.context.end(), [&](const auto& entry) { return entry.path == file; });
    if (!there) made.context.push_back({file, reference(task, device, base_id, made, uid, stop), true});
  });
}

Images::Pinned Images::get(const Recipe& recipe, const std::stop_token& stop,
                           const std::function<void(Recipe&)>& complete) {
  const std::string tag = "kbench/" + recipe.kind + ":" + recipe.key;
  while (true) {
    if (stop.stop_requested()) throw Stopped();
    std::shared_ptr<Flight> flight;
    bool mine = false;
    {
      const std::shared_lock removal(removal_);
      if (const std::optional<engine::Image> image = engine_.image(tag)) return Pinned(*this, image->id);
      const std::lock_guard lock(mutex_);
      std::shared_ptr<Flight>& entry = flights_[tag];
      if (!entry) {
        entry = std::make_shared<Flight>();
        mine = true;
      }
      flight = entry;
    }
    if (!mine) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return flight->done; })) throw Stopped();
      if (flight->failed) flight->rethrow();
      continue;
    }
    const auto land = [&](const std::function<void()>& note) {
      {
        const std::lock_guard lock(mutex_);
        note();
        flight->done = true;
        flights_.erase(tag);
      }
      changed_.notify_all();
    };
    const auto failed = [&](std::optional<Kind> kind, const std::string& cause, const std::string& message,
                            bool final) { land([&] { *flight = {true, true, kind, cause, message, final}; }); };
    try {
      const std::shared_lock removal(removal_);
      Pinned made(*this, make(recipe, stop, complete));
      land([] {});
      return made;
    } catch (const Stopped&) {
      land([] {});  // whoever waits looks again and builds it
      throw;
    } catch (const EngineError& error) {
      failed(error.kind, "", error.what(), false);
      throw;
    } catch (const InfraFault& fault) {
      failed(std::nullopt, fault.cause, std::string(fault.what()).substr(fault.cause.size() + 2), fault.final);
      throw;
    } catch (const std::system_error& error) {
      failed(is_full(error) ? std::optional(Kind::no_space) : std::nullopt, "image", error.what(), false);
      throw;
    } catch (const std::exception& error) {
      failed(std::nullopt, "image", error.what(), false);
      throw;
    }
  }
}

std::string Images::make(Recipe recipe, const std::stop_token& stop, const std::function<void(Recipe&)>& complete) {
  const std::string tag = "kbench/" + recipe.kind + ":" + recipe.key;
  if (const std::optional<engine::Image> image = engine_.image(tag)) return image->id;  // somebody was quicker
  complete(recipe);
  engine::BuildSpec spec;
  spec.context = std::move(recipe.context);
  spec.tags = {tag};
  spec.labels = {{kImageLabel, recipe.kind}, {kImageOwnerLabel, options_.owner}};
  spec.args = recipe.args;
  log_("building " + tag.substr(0, tag.find(':') + 13));
  try {
    return engine_.build(spec, {}, stop);
  } catch (const EngineError& error) {
    if (error.kind == Kind::cancelled) throw Stopped();
    if (error.kind == Kind::unreachable || error.kind == Kind::no_space) throw;
    throw InfraFault("image", error.what());
  }
}

std::string Images::reference(const Task& task, const std::string& device, const std::string& base_id,
                              const Recipe& recipe, std::uint32_t uid, const std::stop_token& stop) {
  // A copy with known modes: the catalogue may lie where the container's uid cannot read.
  const WorkFolder::Scratch folder(work_folder_, "image-" + recipe.key.substr(0, 16));
  const std::string tests = folder.add("tests", 0755), out = folder.add("out", 0777);
  for (const engine::TarEntry& entry : recipe.context) write_beneath(tests, entry.path, entry.content);
  engine::ContainerSpec spec = reference_spec(options_, {base_id, device, recipe.key, tests, out, uid}, seccomp_);
  gpu::attach_toolchain(spec, mode_, attach_);
  const Finished finished = containers_.run(spec, options_.reference_deadline, stop);
  std::optional<std::string> library;
  if (!finished.deadline_hit && finished.state.exit_code == 0)
    library = read_beneath(out, "reference-" + device + ".so", options_.artefact_bytes_max);
  if (library) return *library;
  if (finished.deadline_hit && !finished.disturbed)
    throw InfraFault("reference", "the reference of " + task.id + " takes longer to compile than " +
                                      std::to_string(options_.reference_deadline.count()) +
                                      " ms (grader.reference_deadline): " + finished.log);
  throw InfraFault("reference", "the reference of " + task.id + " does not compile (status " +
                                    std::to_string(finished.state.exit_code) + "): " + finished.log);
}

bool Images::prune(bool pressed) {
  const std::unique_lock removal(removal_, std::try_to_lock);
  if (!removal.owns_lock()) return false;
  struct Candidate {
    engine::Image image;
    std::int64_t used_s, own_bytes;
  };
  std::vector<Candidate> candidates;
  std::int64_t total = 0;
  std::int64_t base_bytes = 0;  // sizes of the list count the base in each image
  for (const std::string& name : {options_.base_cpu, options_.base_cuda})
    if (const auto image = engine_.image(name))
      base_bytes = base_bytes == 0 ? image->bytes : std::min(base_bytes, image->bytes);
  std::set<std::string> nameless;
  for (engine::Image& image : engine_.images(std::string(kImageOwnerLabel) + "=" + options_.owner)) {
    if (!image.labels.contains(kImageLabel)) continue;
    const std::lock_guard lock(mutex_);
    const bool pinned = pins_.contains(image.id);
    if (image.tags.empty()) {
      if (!pinned) nameless.insert(image.id);
      continue;
    }
    const auto used = used_s_.find(image.id);
    const std::int64_t own = std::max<std::int64_t>(image.bytes - base_bytes, 0);
    total += own;
    if (pinned) continue;
    candidates.push_back({image, used == used_s_.end() ? image.created_s : used->second, own});
  }
  remove_nameless(nameless);
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.used_s < b.used_s; });
  const std::int64_t oldest =
      now_s() - std::chrono::duration_cast<std::chrono::seconds>(options_.image_age_max).count();
  for (const Candidate& candidate : candidates) {
    if (!pressed && candidate.used_s >= oldest && total <= options_.images_bytes_max) break;
    const bool gone = removed([&] {
      for (const std::string& tag : candidate.image.tags)
        if (tag.starts_with("kbench/")) engine_.remove_image(tag);
    });
    if (gone) total -= candidate.own_bytes;
  }
  return true;
}

// What builds have left that failed or were cut off, when we died or the Engine did; and an image whose name went to
// another, made by such a build after all. Another kbenchd's carry its own label. What goes with the last image made of
// it is a base that has lost its name; a build that begins on it just now, ours cannot, fails for that: a try more,
// never a wrong verdict.
void Images::remove_nameless(const std::set<std::string>& ids) {
  if (ids.empty()) return;
  // An Engine that was killed leaves a step's container, too, with its image's labels. One that runs is somebody's, and
  // an attempt's has an owner.
  for (const engine::Container& container : engine_.containers(std::string(kImageOwnerLabel) + "=" + options_.owner))
    if (ids.contains(container.image) && !container.running() && !container.labels.contains(kOwnerLabel))
      removed([&] { engine_.remove(container.id); });
  for (const std::string& id : ids)
    if (removed([&] { engine_.remove_image(id); })) log_("removed image " + id.substr(0, 19) + ", left by a build");
}

// One that is in use, or that cannot be removed, is left; an Engine that is away throws.
bool Images::removed(const std::function<void()>& removal) {
  try {
    removal();
    return true;
  } catch (const EngineError& error) {
    if (error.kind == Kind::unreachable || error.kind == Kind::timeout) throw;
    if (error.kind != Kind::conflict) log_(error.what());
    return false;
  }
}

}  // namespace kbench::grader
