#include "daemon/grader/specs.h"

#include <cstdio>

namespace kbench::grader {

namespace {

using engine::ContainerSpec;

constexpr char kSlotsLabel[] = "kbench.slots";  // names, with a space between them
constexpr char kVerifier[] = "/opt/kbench/bin/kbench-verify";

std::string text_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", seconds);
  return text;
}

std::string tmpfs(std::int64_t bytes, const char* exec, const char* mode) {
  return std::string("rw,") + exec + ",nosuid,nodev,size=" + std::to_string(bytes) + ",mode=" + mode;
}

ContainerSpec common(const Options& options, const std::string& seccomp) {
  ContainerSpec spec;
  spec.seccomp = seccomp;
  spec.env = {{"HOME", "/tmp"}, {"LD_PRELOAD", ""}, {"LC_ALL", "C.UTF-8"}};  // PATH is the base image's
  spec.ulimits = {{"nofile", options.nofile_max}};
  spec.shm_bytes = 64 << 20;
  spec.working_dir = "/tmp";
  return spec;
}

std::map<std::string, std::string> labels(const Attempt& attempt, const std::string& kind) {
  return {{kOwnerLabel, attempt.owner},
          {"kbench.submission", attempt.submission},
          {"kbench.attempt", std::to_string(attempt.number)},
          {"kbench.kind", kind}};
}

// What runs a compiler: nothing but a uid of its own.
void as_compiler(const Options& options, std::uint32_t uid, ContainerSpec& spec) {
  spec.user = std::to_string(uid) + ":" + std::to_string(uid);
  spec.memory_bytes = options.compile_memory_bytes;
  spec.pids_max = options.compile_pids_max;
  spec.cpuset = options.compile_cpuset;
  spec.ulimits.push_back({"fsize", options.compile_file_bytes});
  spec.tmpfs["/tmp"] = tmpfs(options.compile_tmp_bytes, "exec", "1777");
}

}  // namespace

std::string container_name(const Attempt& attempt, const std::string& kind) {
  return "kbench-" + attempt.submission + "-" + std::to_string(attempt.number) + "-" + kind;
}

std::string slot_name(const gpu::Slot& slot) {
  return slot.gpu ? slot.gpu->uuid : "uids-" + std::to_string(slot.uid_base);
}

bool is_on(const engine::Container& container, const gpu::Slot& slot) {
  const auto slots = container.labels.find(kSlotsLabel);
  return slots != container.labels.end() &&
         (" " + slots->second + " ").find(" " + slot_name(slot) + " ") != std::string::npos;
}

ContainerSpec compile_spec(const Options& options, const Attempt& attempt, const CompileJob& job,
                           const std::string& seccomp) {
  ContainerSpec spec = common(options, seccomp);
  spec.name = container_name(attempt, "compile");
  spec.labels = labels(attempt, "compile");
  spec.image = job.image;
  as_compiler(options, job.uid, spec);
  spec.mounts = {{job.submission_folder, "/submission", true}, {job.out_folder, "/out", false}};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.compile_deadline).count();
  spec.command = {kVerifier,      "compile",
                  "--task",       "/task",
                  "--submission", "/submission",
                  "--out",        "/out",
                  "--device",     job.device,
                  "--arch",       options.gpu_arch,
                  "--seconds",    std::to_string(std::max<long>(seconds, 1))};
  if (!job.language.empty()) spec.command.insert(spec.command.end(), {"--language", job.language});
  return spec;
}

ContainerSpec reference_spec(const Options& options, const ReferenceJob& job, const std::string& seccomp) {
  const Attempt attempt{options.owner, "image-" + job.key.substr(0, 16), 1};
  ContainerSpec spec = common(options, seccomp);
  spec.name = container_name(attempt, "reference");
  spec.labels = labels(attempt, "reference");
  spec.image = job.image;
  as_compiler(options, job.uid, spec);
  spec.mounts = {{job.tests_folder, "/tests", true}, {job.out_folder, "/out", false}};
  spec.command = {kVerifier,  "reference", "--tests",        "/tests", "--device",
                  job.device, "--arch",    options.gpu_arch, "--out",  "/out/reference-" + job.device + ".so"};
  return spec;
}

ContainerSpec measure_spec(const Options& options, const Attempt& attempt, const MeasureJob& job,
                           const std::string& seccomp) {
  ContainerSpec spec = common(options, seccomp);
  spec.name = container_name(attempt, "measure");
  spec.labels = labels(attempt, "measure");
  for (const std::string& slot : job.slots) spec.labels[kSlotsLabel] += (slot == job.slots.front() ? "" : " ") + slot;
  spec.image = job.image;
  // Root, but only to become somebody else: the worker keeps none of it.
  spec.user = "0:0";
  spec.caps_add = {"SETUID", "SETGID", "KILL"};
  spec.memory_bytes = options.measure_memory_bytes;
  spec.shm_bytes = options.measure_shm_bytes;
  spec.pids_max = options.measure_pids_max;
  spec.cpuset = job.cpuset;
  spec.ulimits.push_back({"fsize", options.measure_file_bytes});
  // What a worker must not touch lies under /kbench; what it may fill is /tmp, /dev/shm and nothing else.
  spec.tmpfs = {{"/tmp", tmpfs(options.measure_tmp_bytes, "exec", "1777")},
                {"/kbench", tmpfs(options.measure_tmp_bytes, "exec", "0700")},
                {"/var/tmp", tmpfs(16 << 20, "noexec", "1777")}};
  spec.mounts = {{job.artefact_folder, "/artefact", true},
                 {job.out_folder, "/kbench/out", false},
                 {job.report_folder, "/kbench/report", false}};
  spec.command = {kVerifier,    "grade",
                  "--tests",    "/tests",
                  "--artefact", "/artefact",
                  "--device",   job.device,
                  "--out",      "/kbench/out",
                  "--report",   "/kbench/report",
                  "--uid-base", std::to_string(job.uid_base),
                  "--arch",     options.gpu_arch};
  if (!job.language.empty()) spec.command.insert(spec.command.end(), {"--language", job.language});
  const VerifierSeconds& seconds = options.verifier;
  const std::pair<const char*, double> limits[] = {{"load", seconds.load},
                                                   {"load-python", seconds.load_python},
                                                   {"prepare", seconds.prepare},
                                                   {"prepare-python", seconds.prepare_python},
                                                   {"repetition", seconds.repetition},
                                                   {"measure", seconds.measure},
                                                   {"conditions", seconds.conditions}};
  for (const auto& [name, value] : limits)
    spec.command.insert(spec.command.end(), {std::string("--") + name + "-seconds", text_of(value)});
  return spec;
}

}  // namespace kbench::grader
