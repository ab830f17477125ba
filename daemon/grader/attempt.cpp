#include "daemon/grader/attempt.h"

#include <kbench/events.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "daemon/grader/files.h"
#include "daemon/grader/outcome.h"
#include "daemon/grader/receiver.h"
#include "daemon/grader/specs.h"

namespace kbench::grader {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kSmallFileBytes = 64 * 1024;           // of reward.json, infra_error.json
constexpr std::size_t kCompileFileBytes = 2 * 1024 * 1024;   // of compile.json
constexpr std::size_t kSpoolBytes = std::size_t{256} << 20;  // of events.ndjson
constexpr std::chrono::seconds kLeftoverPatience{10};        // for a GPU's processes to end after their container

// The attempt's files on the host: what is handed in, and leaves that containers write into.
struct Folder {
  Folder(WorkFolder& parent, const Attempt& attempt)
      : root(parent, attempt.submission + "-" + std::to_string(attempt.number)) {}
  const WorkFolder::Scratch root;
  const std::string submission = root.add("submission", 0755), artefact = root.add("artefact", 0755);
  const std::string compiled = root.add("compiled", 0777), out = root.add("out", 0777),
                    report = root.add("report", 0777);
};

class Grading {
 public:
  Grading(Site& site, const store::Lease& lease, Stopper& stopper, std::uint32_t compile_uid)
      : site_(site),
        lease_(lease),
        stopper_(stopper),
        compile_uid_(compile_uid),
        attempt_{site.options.owner, lease.submission.id, lease.attempt},
        folder_(site.work_folder, attempt_) {}

  store::Outcome run() {
    const Task& task = the_task();
    const std::string& device = lease_.submission.device;
    enter(store::State::preparing);
    phase("image");
    const Images::Pinned environment = site_.images.environment(task, device, stopper_.token());
    const Images::Pinned judge_image = site_.images.judge(task, device, compile_uid_, stopper_.token());
    facts_["images"] = {{"environment", environment.id()}, {"judge", judge_image.id()}};

    phase("compile");
    if (std::optional<store::Outcome> ended = compile(environment.id())) return with_log(*std::move(ended));

    phase("slot");
    enter(store::State::ready);
    gpu::Slots::Held held = acquire();
    enter(store::State::measuring);
    phase("measure");
    return with_log(measure(judge_image.id(), std::move(held)));
  }

 private:
  const Task& the_task() const {
    const Task* task = site_.tasks.find(lease_.submission.task);
    if (!task) throw InfraFault("task", "this grader has no task " + lease_.submission.task, true);
    if (!lease_.submission.task_hash.empty() && task->problem.hash != lease_.submission.task_hash)
      throw InfraFault("task", "the catalogue has another version of it now: submit again", true);
    return *task;
  }

  // False from the source: the attempt is somebody else's now.
  void still_mine(bool accepted) {
    if (accepted) return;
    stopper_.stop(StopReason::lost);
    throw Stopped();
  }
  void enter(store::State state) { still_mine(site_.source.state(attempt_.submission, attempt_.number, state)); }
  void say(const char* type, Json fields, std::int64_t seq = 0) {
    fields["type"] = type;
    still_mine(site_.source.event(attempt_.submission, attempt_.number, seq, type,
                                  fields.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  void phase(const char* name) {
    end_phase();
    phase_ = name;
    phase_began_ = Clock::now();
    say(events::kPhase, {{"phase", name}});
  }
  void end_phase() {
    if (phase_.empty()) return;
    facts_["seconds"][phase_] = std::chrono::duration<double>(Clock::now() - phase_began_).count();
    phase_.clear();
  }
  store::Outcome with_log(store::Outcome outcome) {
    outcome.log = log_;
    return outcome;
  }
  void add_log(const char* title, const std::string& text) {
    if (!text.empty()) log_ += std::string("== ") + title + "\n" + text + (text.ends_with('\n') ? "" : "\n");
  }

  // An outcome when the submission does not compile; else its artefact lies in the folder.
  std::optional<store::Outcome> compile(const std::string& image) {
    const Options& options = site_.options;
    try {
      for (const store::File& file : lease_.files) write_beneath(folder_.submission, file.path, file.content);
    } catch (const FileFault& fault) {
      return verdict_without_measuring(events::kCompileError, fault.what());
    }
    // Where we are root only that uid may write there; elsewhere the leaf is open and its parent is not.
    if (::geteuid() == 0 && (::chown(folder_.compiled.c_str(), compile_uid_, compile_uid_) != 0 ||
                             ::chmod(folder_.compiled.c_str(), 0700) != 0))
      throw FileFault(folder_.compiled + " cannot be given away");
    CompileJob job{
        image,       lease_.submission.device, lease_.submission.language, folder_.submission, folder_.compiled,
        compile_uid_};
    engine::ContainerSpec spec = compile_spec(options, attempt_, job, site_.seccomp);
    gpu::attach_toolchain(spec, site_.mode, site_.attach);
    const Finished finished =
        site_.containers.run(spec, options.compile_deadline + options.container_slack, stopper_.token());
    if (finished.state.oom_killed) {
      add_log("compile", finished.log);
      return verdict_without_measuring(events::kOutOfMemory, "the compiler needs more memory than it may have");
    }
    const auto limit = std::chrono::duration<double>(options.compile_deadline).count();
    const std::string too_slow = "the compiler took more than " + std::to_string(static_cast<long>(limit)) + " s";
    if (finished.deadline_hit) {
      if (finished.disturbed) throw InfraFault("engine", "it went away while the submission was compiled");
      return verdict_without_measuring(events::kTimeout, too_slow);
    }
    const std::optional<std::string> text = read_beneath(folder_.compiled, "compile.json", kCompileFileBytes);
    const std::optional<Compiled> compiled = text ? read_compiled(*text, options.log_bytes_max) : std::nullopt;
    if (!compiled || finished.state.exit_code > 1)
      throw InfraFault("compiler",
                       "it ended with status " + std::to_string(finished.state.exit_code) + ": " + finished.log);
    add_log("compile", compiled->log);
    facts_["compile"] = {{"seconds", compiled->seconds}, {"compiler", compiled->compiler}};
    say(events::kCompiled, {{"ok", compiled->ok},
                            {"seconds", compiled->seconds},
                            {"exit_code", compiled->exit_code},
                            {"log", compiled->log.substr(0, kSmallFileBytes / 4)}});
    if (!compiled->ok && compiled->seconds >= limit) return verdict_without_measuring(events::kTimeout, too_slow);
    if (!compiled->ok) return verdict_without_measuring(events::kCompileError, "see the log");
    take_artefact();
    return std::nullopt;
  }

  // The container is dead: nobody changes what is read now.
  void take_artefact() {
    const Taken taken = take_folder(folder_.compiled, "artefact", folder_.artefact,
                                    {site_.options.artefact_files_max, site_.options.artefact_bytes_max});
    if (taken.files == 0) throw InfraFault("compiler", "it said ok and left no artefact");
    facts_["artefact"] = {{"sha256", taken.sha256}, {"bytes", taken.bytes}};
  }

  gpu::Slots::Held acquire() {
    const store::Submission& submission = lease_.submission;
    while (true) {
      const bool any_model = submission.gpu_model.empty() && submission.gpus > 1;
      const std::string model = any_model ? site_.slots.commonest().model : submission.gpu_model;
      std::optional<gpu::Slots::Held> held = site_.slots.acquire(submission.device, submission.gpus, model,
                                                                 submission.id, stopper_.token(), submission.submitter);
      if (!held) throw Stopped();
      bool healthy = true;
      for (const gpu::Gpu& gpu : held->gpus()) {
        const auto fault = site_.inventory ? site_.inventory->fault(gpu.uuid) : std::nullopt;
        if (fault) site_.slots.quarantine_gpu(gpu.uuid, *fault);
        healthy = healthy && !fault;
      }
      if (healthy) return *std::move(held);
    }
  }

  store::Outcome measure(const std::string& image, gpu::Slots::Held taken) {
    const Options& options = site_.options;
    std::optional<gpu::Slots::Held> held(std::move(taken));
    const std::vector<gpu::Gpu> gpus = held->gpus();
    MeasureJob job{
        image,          lease_.submission.device, lease_.submission.language,    folder_.artefact, folder_.out,
        folder_.report, held->cpuset(),           held->slots().front().uid_base};
    for (const gpu::Slot& slot : held->slots()) job.slots.push_back(slot_name(slot));
    engine::ContainerSpec spec = measure_spec(options, attempt_, job, site_.seccomp);
    gpu::attach(spec, site_.mode, site_.attach, gpus);
    facts_["slots"] = Json::array();
    for (const gpu::Slot& slot : held->slots())
      facts_["slots"].push_back(
          {{"device", slot.device}, {"cpuset", slot.cpuset}, {"gpu", slot.gpu ? slot.gpu->uuid : ""}});
    const std::map<std::string, int> before = processes_on(gpus);

    EventLog log([&](std::int64_t seq, const std::string& type, const std::string& json) {
      still_mine(site_.source.event(attempt_.submission, attempt_.number, seq, type, json));
    });
    Finished finished;
    try {
      const Receiver receiver(folder_.report, log);
      finished = site_.containers.run(spec, options.measure_deadline + options.container_slack, stopper_.token());
    } catch (const Unkillable& fault) {
      for (const gpu::Slot& slot : held->slots())
        site_.slots.quarantine(slot.index, std::string("unkillable: ") + fault.what());
      throw InfraFault("gpu", fault.what());
    }
    const std::string spool = read_beneath(folder_.out, "events.ndjson", kSpoolBytes).value_or("");
    log.take(spool);
    add_log("measure", finished.log);
    end_phase();
    Measured measured = collect(finished);
    measured.measuring_share = measuring_share(spool, options.measure_deadline + options.container_slack);
    const Judged judged = judge(measured, lease_.submission.device, options.ranked_devices, facts_.dump());
    site_.slots.judge(*held, judged.gpu_fault, judged.outcome.reason);
    quarantine_haunted(gpus, before);
    held.reset();  // the next one measures while this one is put away and handed in
    tell_last(log, judged.outcome);
    return judged.outcome;
  }

  Measured collect(const Finished& finished) const {
    Measured measured;
    measured.reward = read_beneath(folder_.out, "reward.json", kSmallFileBytes);
    measured.details = read_beneath(folder_.out, "details.json", site_.options.details_bytes_max);
    measured.infra = read_beneath(folder_.out, "infra_error.json", kSmallFileBytes);
    measured.exit_code = finished.state.exit_code;
    measured.oom_killed = finished.state.oom_killed;
    measured.deadline_hit = finished.deadline_hit;
    measured.disturbed = finished.disturbed;
    measured.log = finished.log;
    return measured;
  }

  // The verifier's last word is published when it is what the attempt ends with, and not before it is about to.
  void tell_last(const EventLog& log, const store::Outcome& outcome) {
    const std::optional<std::string> last = log.last();
    if (!last) return;
    const Json event = Json::parse(*last, nullptr, false);
    const std::string type = event.value("type", "");
    const bool agrees = outcome.kind == store::Outcome::Kind::verdict
                            ? type == events::kVerdict && event.value("verdict", Json()) == Json(outcome.verdict)
                            : type == events::kInfra;
    if (agrees) still_mine(site_.source.event(attempt_.submission, attempt_.number, log.last_seq(), type, *last));
  }

  std::map<std::string, int> processes_on(const std::vector<gpu::Gpu>& gpus) const {
    std::map<std::string, int> counts;
    for (const gpu::Gpu& gpu : gpus) counts[gpu.uuid] = site_.inventory ? site_.inventory->processes(gpu.uuid) : 0;
    return counts;
  }

  // One grading must not leave anything on the GPU for the next.
  void quarantine_haunted(const std::vector<gpu::Gpu>& gpus, const std::map<std::string, int>& before) {
    const auto deadline = Clock::now() + kLeftoverPatience;
    for (const gpu::Gpu& gpu : gpus) {
      while (site_.inventory && site_.inventory->processes(gpu.uuid) > before.at(gpu.uuid) && Clock::now() < deadline)
        std::this_thread::sleep_for(milliseconds(100));
      if (site_.inventory && site_.inventory->processes(gpu.uuid) > before.at(gpu.uuid))
        site_.slots.quarantine_gpu(gpu.uuid, "a process of " + attempt_.submission + " is still on it");
    }
  }

  Site& site_;
  const store::Lease& lease_;
  Stopper& stopper_;
  const std::uint32_t compile_uid_;
  const Attempt attempt_;
  const Folder folder_;
  Json facts_ = Json::object();  // of the details: images, artefact, slots, seconds by phase
  std::string log_, phase_;
  Clock::time_point phase_began_;
};

}  // namespace

store::Outcome grade_attempt(Site& site, const store::Lease& lease, Stopper& stopper, std::uint32_t compile_uid) {
  return Grading(site, lease, stopper, compile_uid).run();
}

}  // namespace kbench::grader
