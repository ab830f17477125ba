#include "daemon/grader/grader.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "daemon/grader/attempt.h"
#include "daemon/grader/files.h"
#include "daemon/grader/intake.h"
#include "daemon/grader/outcome.h"
#include "daemon/grader/specs.h"
#include "daemon/grader/work_folder.h"

namespace kbench::grader {

using engine::EngineError;
using Kind = EngineError::Kind;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kSourcePause{500};  // after the source failed
constexpr milliseconds kXidPatience{1'000};

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) throw std::runtime_error("the seccomp profile " + path + " cannot be read");
  return text;
}

// False: stopped.
bool sleep(milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

class Grader::Impl {
 public:
  Impl(Options options, engine::Options engine_options, const gpu::SlotOptions& slot_options,
       gpu::AttachOptions attach_options, const Tasks& tasks, AttemptSource& source, gpu::Inventory* inventory,
       std::function<void(const std::string&)> log)
      : options_(std::move(options)),
        work_folder_(options_.work_folder),
        attach_(std::move(attach_options)),
        log_(std::move(log)),
        source_(source),
        inventory_(inventory),
        seccomp_(options_.seccomp_file.empty() ? kSeccompProfile : text_of_file(options_.seccomp_file)),
        engine_(std::move(engine_options)),
        containers_(engine_, log_),
        images_(options_, work_folder_, engine_, containers_, mode_, attach_, seccomp_, log_),
        slots_(gpu::make_slots(slot_options, inventory ? inventory->list() : std::vector<gpu::Gpu>{}),
               slot_options.gpu_faults_max),
        intake_(options_, log_),
        site_{options_, work_folder_, engine_, containers_, images_,  slots_, mode_,
              attach_,  tasks,        source,  inventory,   seccomp_, log_} {
    if (options_.owner.empty()) options_.owner = work_folder_.owner();
    intake_.set_fault("engine", "not looked at yet");
    threads_.emplace_back([this](const std::stop_token& stop) { follow_engine(stop); });
    threads_.emplace_back([this](const std::stop_token& stop) { keep_house(stop); });
    threads_.emplace_back([this](const std::stop_token& stop) { renew_all(stop); });
    if (inventory_) threads_.emplace_back([this](const std::stop_token& stop) { watch_xids(stop); });
    // For each device its own, else a backlog of one would keep all of them while another's slots idle.
    std::map<std::string, int> workers;
    for (const gpu::SlotView& view : slots_.view())
      workers.try_emplace(view.slot.device, std::max(options_.prepare_ahead, 0)).first->second += 1;
    std::uint32_t compile_uid = options_.compile_uid_first;
    for (const auto& [device, count] : workers)
      for (int i = 0; i < count; ++i)
        threads_.emplace_back(
            [this, device, uid = compile_uid++](const std::stop_token& stop) { work(stop, device, uid); });
  }

  ~Impl() { stop(); }

  void stop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    {
      // First those who wait for work, else they would claim what the others are about to give back.
      std::unique_lock lock(mutex_);
      stopping_ = true;
      claimed_.wait(lock, [this] { return claiming_ == 0; });
      for (const auto& [key, stopper] : active_) stopper->stop(StopReason::shutdown);
      ended_.wait_for(lock, options_.stop_grace, [this] { return active_.empty(); });
    }
    containers_.give_up();
    threads_.clear();  // joins
  }

  std::vector<gpu::SlotView> slots() const { return slots_.view(); }
  void release_quarantine(int slot) { slots_.release_quarantine(slot); }
  std::vector<Fault> faults() const { return intake_.faults(); }
  int active() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(active_.size());
  }

 private:
  using Key = std::pair<std::string, int>;

  // ---- The Engine: after each connection the truth is what it lists, not what its events say.

  void follow_engine(const std::stop_token& stop) {
    milliseconds pause = engine_.options().backoff_min;
    while (!stop.stop_requested()) {
      std::string why;
      try {
        engine_.events(
            std::string(kOwnerLabel) + "=" + options_.owner,
            [&] {
              reconcile();
              intake_.look_at_engine(engine_);
              intake_.look_at_slots(engine_, slots_);
              intake_.set_fault("engine", "");
              pause = engine_.options().backoff_min;
            },
            [](const engine::Event&) {}, stop);
      } catch (const std::exception& error) {
        why = error.what();
      }
      if (stop.stop_requested()) return;
      intake_.set_fault("engine", why.empty() ? "it ended its events" : why);
      if (!sleep(pause, stop)) return;
      pause = std::min(pause * 2, engine_.options().backoff_max);
    }
  }

  void reconcile() {
    mode_ = gpu::resolve(attach_, engine_.info());
    sweep();
    next_prune_ = Clock::now();  // builds were cut off
    if (!recovered_) {
      // From before a restart; nothing of them runs any more on a slot that is used.
      for (const store::Lease& lease : source_.held()) {
        log_("giving back " + lease.submission.id + ", attempt " + std::to_string(lease.attempt) +
             ", left from before the restart");
        source_.release(lease.submission.id, lease.attempt);
      }
      recovered_ = true;
    }
  }

  void sweep() {
    for (const Stuck& stuck : containers_.sweep(options_.owner))
      for (const gpu::SlotView& view : slots_.view())
        if (is_on(stuck.container, view.slot))
          slots_.quarantine(view.slot.index, "unkillable: " + stuck.container.name + ": " + stuck.why);
    work_folder_.clear();
  }

  // ---- Housekeeping: health, disk, bases, images, containers that are nobody's.

  void keep_house(const std::stop_token& stop) {
    auto next_sweep = Clock::now() + options_.reconcile_every;
    while (!stop.stop_requested()) {
      if (recovered_) {
        try {
          intake_.look_at_engine(engine_);
          intake_.look_at_slots(engine_, slots_);
          intake_.set_fault("engine.answers", "");
          if (Clock::now() >= next_sweep) {
            sweep();
            next_sweep = Clock::now() + options_.reconcile_every;
          }
          if (const bool pressed = intake_.has_fault("disk"); pressed || Clock::now() >= next_prune_.load()) {
            next_prune_ = Clock::now() + options_.prune_every;
            if (!images_.prune(pressed)) next_prune_ = Clock::now();
          }
        } catch (const EngineError& error) {  // its events may still stand: an Engine that hangs closes nothing
          intake_.set_fault("engine.answers", error.what());
        } catch (const std::exception& error) {
          log_(std::string("housekeeping: ") + error.what());
        }
      }
      if (!sleep(options_.health_every, stop)) return;
    }
  }

  void watch_xids(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::optional<gpu::Inventory::Xid> xid = inventory_->next_xid(kXidPatience);
      if (!xid) continue;
      log_("GPU " + xid->uuid + ": XID " + std::to_string(xid->code));
      if (gpu::kind_of_xid(xid->code) == gpu::XidKind::hardware)
        slots_.quarantine_gpu(xid->uuid, "XID " + std::to_string(xid->code));
    }
  }

  // ---- Leases.

  void renew_all(const std::stop_token& stop) {
    while (sleep(options_.renew_every, stop)) {
      std::map<Key, std::shared_ptr<Stopper>> now;
      {
        const std::lock_guard lock(mutex_);
        now = active_;
      }
      for (const auto& [key, stopper] : now) {
        try {
          const AttemptSource::Hold hold = source_.renew(key.first, key.second);
          if (hold == AttemptSource::Hold::lost) stopper->stop(StopReason::lost);
          if (hold == AttemptSource::Hold::cancel) stopper->stop(StopReason::cancel);
        } catch (const std::exception& error) {
          // Should the lease run out meanwhile, the source refuses what this attempt writes: nothing is counted twice.
          log_("renewing " + key.first + ": " + error.what());
        }
      }
    }
  }

  // ---- Work.

  void work(const std::stop_token& stop, const std::string& device, std::uint32_t compile_uid) {
    while (!stop.stop_requested()) {
      store::Wanted wanted{};
      wanted.grader = options_.name;
      wanted.devices = intake_.devices(stop);
      if (stop.stop_requested()) return;
      wanted.gpus_max = slots_.commonest().count;
      wanted.gpu_models = slots_.models();
      std::erase_if(wanted.devices, [&](const std::string& one) { return one != device || slots_.usable(one) == 0; });
      if (wanted.devices.empty()) {
        sleep(options_.health_every, stop);
        continue;
      }
      if (const std::optional<store::Lease> lease = claim(wanted, stop)) serve(*lease, compile_uid, stop);
    }
  }

  std::optional<store::Lease> claim(const store::Wanted& wanted, const std::stop_token& stop) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return std::nullopt;
      ++claiming_;
    }
    std::optional<store::Lease> lease;
    std::string cause;
    try {
      lease = source_.claim(wanted, options_.claim_wait);
    } catch (const std::exception& error) {
      cause = error.what();
    }
    {
      const std::lock_guard lock(mutex_);
      --claiming_;
    }
    claimed_.notify_all();
    intake_.set_fault("source", cause);
    if (!cause.empty()) sleep(kSourcePause, stop);
    return lease;
  }

  // The one boundary: whatever goes wrong inside becomes an outcome, a released lease, or nothing where the attempt is
  // not ours any more.
  void serve(const store::Lease& lease, std::uint32_t compile_uid, const std::stop_token& stop) {
    const Key key{lease.submission.id, lease.attempt};
    const auto stopper = std::make_shared<Stopper>();
    {
      const std::lock_guard lock(mutex_);
      active_[key] = stopper;
      if (stopping_) stopper->stop(StopReason::shutdown);
    }
    try {
      std::optional<store::Outcome> outcome = outcome_of(lease, *stopper, compile_uid);
      if (outcome) {
        source_.finish(key.first, key.second, *outcome);
      } else if (stopper->reason() != StopReason::lost) {
        source_.release(key.first, key.second);
      }
      if (!outcome && stopper->reason() == StopReason::none)
        sleep(kSourcePause, stop);  // what failed may fail at once again
    } catch (const std::exception& error) {
      // The lease runs out, and the submission is graded again.
      log_("handing in " + key.first + ": " + error.what());
    }
    {
      const std::lock_guard lock(mutex_);
      active_.erase(key);
    }
    ended_.notify_all();
  }

  // nullopt: to be given back (not when the attempt was lost).
  std::optional<store::Outcome> outcome_of(const store::Lease& lease, Stopper& stopper, std::uint32_t compile_uid) {
    try {
      return grade_attempt(site_, lease, stopper, compile_uid);
    } catch (const Stopped&) {
      if (stopper.reason() != StopReason::cancel) return std::nullopt;
      store::Outcome outcome{};
      outcome.kind = store::Outcome::Kind::cancelled;
      outcome.reason = "cancelled while in progress";
      return outcome;
    } catch (const EngineError& error) {
      log_(lease.submission.id + ": " + error.what());
      if (error.kind == Kind::no_space) intake_.disk_is_full(error.what());
      // An Engine that is away and a full disk say nothing of the submission: given back, not counted against its
      // budget.
      if (error.kind == Kind::no_space || error.kind == Kind::unreachable) return std::nullopt;
      return infra("engine: " + std::string(error.what()));
    } catch (const store::StoreFault& fault) {
      log_(lease.submission.id + ": " + fault.what());
      return std::nullopt;
    } catch (const gpu::NoSlot& none) {  // quarantined since it was claimed: it has not been tried
      log_(lease.submission.id + ": " + none.what());
      return std::nullopt;
    } catch (const InfraFault& fault) {
      log_(lease.submission.id + ": " + fault.what());
      return infra(fault.what(), fault.final);
    } catch (const std::system_error& error) {
      log_(lease.submission.id + ": " + error.what());
      if (!is_full(error)) return infra(std::string("grader: ") + error.what());
      intake_.disk_is_full(error.what());
      return std::nullopt;
    } catch (const std::exception& error) {
      log_(lease.submission.id + ": " + error.what());
      return infra(std::string("grader: ") + error.what());
    }
  }

  Options options_;  // not changed once the threads run
  WorkFolder work_folder_;
  const gpu::AttachOptions attach_;
  const std::function<void(const std::string&)> log_;
  AttemptSource& source_;
  gpu::Inventory* const inventory_;
  const std::string seccomp_;
  std::atomic<gpu::Mode> mode_ = gpu::Mode::none;
  engine::Engine engine_;
  Containers containers_;
  Images images_;
  gpu::Slots slots_;
  Intake intake_;
  Site site_;

  mutable std::mutex mutex_;
  std::condition_variable claimed_, ended_;
  bool stopping_ = false;
  int claiming_ = 0;
  std::atomic<bool> recovered_ = false;
  std::atomic<Clock::time_point> next_prune_ = Clock::time_point();
  std::map<Key, std::shared_ptr<Stopper>> active_;
  std::vector<std::jthread> threads_;  // last: they use all above
};

Grader::Grader(Options options, engine::Options engine_options, const gpu::SlotOptions& slot_options,
               gpu::AttachOptions attach_options, const Tasks& tasks, AttemptSource& source, gpu::Inventory* inventory,
               std::function<void(const std::string&)> log)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(engine_options), slot_options,
                                   std::move(attach_options), tasks, source, inventory, std::move(log))) {}
Grader::~Grader() = default;
void Grader::stop() { impl_->stop(); }
std::vector<gpu::SlotView> Grader::slots() const { return impl_->slots(); }
void Grader::release_quarantine(int slot) { impl_->release_quarantine(slot); }
std::vector<Fault> Grader::faults() const { return impl_->faults(); }
int Grader::active() const { return impl_->active(); }

}  // namespace kbench::grader
