#include "daemon/grader/containers.h"

#include "daemon/grader/specs.h"

namespace kbench::grader {

using engine::EngineError;
using Kind = EngineError::Kind;
using engine::milliseconds;

namespace {

constexpr int kKilled = 128 + 9;  // the status of what SIGKILL ended

// Labels alone do not prove it: a container inherits those of its image.
bool is_of(const engine::Container& container, const std::string& owner) {
  const auto label = [&](const char* key) {
    const auto found = container.labels.find(key);
    return found == container.labels.end() ? std::string() : found->second;
  };
  const Attempt attempt{owner, label("kbench.submission"), std::atoi(label("kbench.attempt").c_str())};
  return label(kOwnerLabel) == owner && container.name == container_name(attempt, label("kbench.kind"));
}

// A start whose answer never came may be under way in one that is only created.
bool has_ended(const engine::Container& container) { return !container.running() && container.status != "created"; }

// An Engine that gives no answer says nothing of a container.
bool is_answer(const EngineError& error) { return error.status >= 400; }

void kill(engine::Engine& engine, const std::string& id) {
  try {
    engine.kill(id);
  } catch (const EngineError& error) {
    if (is_answer(error)) throw Unkillable(error.what());
    throw;
  }
}

}  // namespace

Finished Containers::run(const engine::ContainerSpec& spec, engine::milliseconds deadline,
                         const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex_);
    names_.insert(spec.name);
  }
  const std::string owner = spec.labels.at(kOwnerLabel);
  const std::shared_ptr<void> known(this, [this, name = spec.name](void*) {
    const std::lock_guard lock(mutex_);
    names_.erase(names_.find(name));
  });
  std::string id;
  try {
    Finished finished = run_to_end(spec, deadline, stop, id);
    finished.remains = {this, [this, known, name = spec.name, owner, id](void*) {
                          try {
                            put_away(name, owner, id, true);
                          } catch (...) {  // in a destructor; it has ended, and the sweep finds it
                          }
                        }};
    return finished;
  } catch (const Unkillable&) {
    throw;
  } catch (...) {
    put_away(spec.name, owner, id, false);
    throw;
  }
}

Finished Containers::run_to_end(const engine::ContainerSpec& spec, engine::milliseconds deadline,
                                const std::stop_token& stop, std::string& id) {
  if (stop.stop_requested()) throw Stopped();
  id = engine_.create(spec);
  engine::Run run = engine_.start(id);
  Finished finished;
  std::optional<engine::Container> state = run.wait(deadline, stop);
  if (!state) {
    kill(engine_, id);
    if (stop.stop_requested()) throw Stopped();
    state = run.wait(engine_.options().kill_timeout);
    if (!state) state = engine_.inspect(id);  // the Engine was away, or it says so itself
    if (!state) throw EngineError(Kind::not_found, 404, spec.name + ": removed by somebody else");
    if (!has_ended(*state)) throw Unkillable(spec.name + " still runs after it was killed");
    // Else it had ended by itself, and the Engine was late to say so.
    finished.deadline_hit = state->exit_code == kKilled;
  }
  finished.state = *state;
  finished.disturbed = run.disturbed();
  try {
    finished.log = engine_.logs(id);
  } catch (const EngineError& error) {
    log_("no log of " + spec.name + ": " + error.what());
  }
  return finished;
}

void Containers::put_away(const std::string& name, const std::string& owner, std::string id, bool ended) {
  for (milliseconds pause = engine_.options().backoff_min;;
       pause = std::min(pause * 2, engine_.options().backoff_max)) {
    bool removing = false;
    try {
      if (!ended) {
        // A creation of unknown outcome may have left one; one of somebody else by that name is not ours to remove.
        const auto there = engine_.inspect(id.empty() ? name : id);
        if (!there || !is_of(*there, owner)) return;
        id = there->id;
        ended = has_ended(*there);
      }
      removing = true;
      engine_.remove(id);
      return;
    } catch (const EngineError& error) {
      if (!ended && removing && is_answer(error)) throw Unkillable(name + ": " + error.what());
      std::unique_lock lock(mutex_);
      if (ended || given_up_changed_.wait_for(lock, pause, [this] { return given_up_; })) {
        log_("container " + name + " is left to the sweep: " + error.what());
        return;
      }
    }
  }
}

void Containers::give_up() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  given_up_changed_.notify_all();
}

std::vector<Stuck> Containers::sweep(const std::string& owner) {
  std::vector<Stuck> stuck;
  std::set<std::string> now;
  for (engine::Container& container : engine_.containers(std::string(kOwnerLabel) + "=" + owner)) {
    if (!is_of(container, owner)) continue;
    bool again = false;
    {
      const std::lock_guard lock(mutex_);  // a name is entered before its container is made
      if (names_.contains(container.name)) continue;
      again = stuck_.contains(container.id);
    }
    if (!again) log_("removing " + container.name + ", which is nobody's");
    const std::string why = why_stuck(container.id, again);
    if (why.empty()) continue;
    now.insert(container.id);
    stuck.push_back({std::move(container), why});
  }
  const std::lock_guard lock(mutex_);
  stuck_ = std::move(now);
  return stuck;
}

// Empty: it is gone, or has ended and goes another time.
std::string Containers::why_stuck(const std::string& id, bool again) {
  try {
    if (again) engine_.kill(id);  // one try, where removing would try for a minute, and hold up the house
    engine_.remove(id);
    return {};
  } catch (const EngineError& error) {
    if (error.kind == Kind::unreachable) throw;
    if (!again) log_(error.what());
    const auto there = engine_.inspect(id);  // also asks whether the Engine answers at all
    return there && !has_ended(*there) ? error.what() : "";
  }
}

}  // namespace kbench::grader
