// Start, and the watch over the end. The wait is registered before the start; see engine.md's races in the tests.
#include <thread>

#include "daemon/engine/impl.h"

namespace kbench::engine {

using Clock = std::chrono::steady_clock;

namespace {
constexpr std::size_t kWaitBytesMax = 4096;  // of a wait's answer; a longer one is no JSON then
}

struct Run::State {
  std::shared_ptr<Engine::Impl> engine;
  std::string id;

  std::mutex mutex;
  std::condition_variable_any changed;
  enum class Wait : std::uint8_t { pending, registered, ended, broken } wait = Wait::pending;
  std::optional<EngineError> trouble;  // of a wait that broke
  bool was_registered = false, was_disturbed = false;
  std::jthread watcher;  // last: its thread uses all above

  void watch(const char* condition) {
    {
      const std::lock_guard lock(mutex);
      wait = Wait::pending;
    }
    watcher = std::jthread([this, condition](const std::stop_token& stop) {
      std::optional<EngineError> failure;
      std::string body;
      try {
        Call call{.method = "POST", .path = "/containers/" + id + "/wait?condition=" + condition};
        call.on_accepted = [this] { set(Wait::registered, {}); };
        call.on_body = [&](std::string_view bytes) { body.append(bytes.substr(0, kWaitBytesMax - body.size())); };
        call.stop = stop;
        engine->demand(call);
        if (!child_of(Json::parse(body, nullptr, false), "StatusCode").is_number())
          failure = EngineError(Kind::unreachable, 200, "wait: the answer was cut");
      } catch (const EngineError& error) {
        failure = error;
      }
      if (stop.stop_requested()) return;
      set(failure ? Wait::broken : Wait::ended, failure);
    });
  }

  void set(Wait to, const std::optional<EngineError>& why) {
    {
      const std::lock_guard lock(mutex);
      wait = to;
      trouble = why;
      if (to == Wait::registered) was_registered = true;
      if (to == Wait::broken) was_disturbed = true;
    }
    changed.notify_all();
  }
};

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::Run(Run&&) noexcept = default;
Run::~Run() = default;

bool Run::disturbed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->was_disturbed;
}

std::optional<Container> Run::wait(milliseconds patience, const std::stop_token& stop) {
  using Wait = State::Wait;
  State& state = *state_;
  const auto deadline = Clock::now() + patience;
  milliseconds pause = state.engine->options.backoff_min;
  while (true) {
    {
      std::unique_lock lock(state.mutex);
      if (!state.changed.wait_until(lock, stop, deadline,
                                    [&] { return state.wait == Wait::ended || state.wait == Wait::broken; }))
        return std::nullopt;
    }
    // Ended or broken: what the Engine says now is the truth.
    bool runs_on = false;
    try {
      const std::optional<Container> now = state.engine->inspect(state.id);
      if (!now) throw EngineError(Kind::not_found, 404, "the container was removed while it was watched");
      if (!now->running()) return now;
      runs_on = true;
    } catch (const EngineError& error) {
      if (error.kind == Kind::not_found) throw;
      const std::lock_guard lock(state.mutex);
      state.was_disturbed = true;
    }
    {
      std::unique_lock lock(state.mutex);
      state.changed.wait_until(lock, stop, std::min(deadline, Clock::now() + pause), [] { return false; });
    }
    if (stop.stop_requested() || Clock::now() >= deadline) return std::nullopt;
    pause = std::min(pause * 2, state.engine->options.backoff_max);
    // It has been started, so "not-running" returns at once should it end meanwhile; "next-exit" would hang.
    if (runs_on) state.watch("not-running");
  }
}

namespace {

// What became of a start without an answer. An Engine that is away is waited for, as long as a start may take.
bool started_after_all(Engine::Impl& engine, const std::string& id) {
  const auto deadline = Clock::now() + engine.options.start_timeout;
  milliseconds pause = engine.options.backoff_min;
  while (true) {
    try {
      const std::optional<Container> now = engine.inspect(id);
      return now && now->status != "created";
    } catch (const EngineError& error) {
      if (Clock::now() + pause >= deadline) throw;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, engine.options.backoff_max);
  }
}

}  // namespace

Run Engine::start(const std::string& id) {
  using Wait = Run::State::Wait;
  auto state = std::make_unique<Run::State>();
  state->engine = impl_;
  state->id = id;
  state->watch("next-exit");
  {
    std::unique_lock lock(state->mutex);
    state->changed.wait_for(lock, impl_->options.inspect_timeout, [&] { return state->wait != Wait::pending; });
    if (state->wait == Wait::pending) throw EngineError(Kind::timeout, 0, "wait: not registered in time");
    // One that breaks later is survivable: a started container is inspected. One that never was says that something is
    // wrong.
    if (!state->was_registered)
      throw state->trouble.value_or(EngineError(Kind::failed, 0, "wait: ended before the start"));
  }
  try {
    const Turnstile::Pass pass(impl_->changes);
    impl_->demand({.method = "POST", .path = "/containers/" + id + "/start", .timeout = impl_->options.start_timeout});
  } catch (const EngineError& error) {
    // A start whose client is gone still happens; then the container is watched like any other.
    if (error.kind != Kind::timeout && error.kind != Kind::unreachable) throw;
    if (!started_after_all(*impl_, id)) throw;
  }
  return Run(std::move(state));
}

}  // namespace kbench::engine
