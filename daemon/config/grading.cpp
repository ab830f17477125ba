// The options of what grades: submissions' limits, GPUs, slots, containers.
#include <kbench/sources.h>

#include <algorithm>
#include <cctype>

#include "daemon/config/kinds.h"
#include "daemon/config/tables.h"

namespace kbench::config {

namespace {

using namespace std::chrono_literals;

constexpr char kAllCpus[] = "all";
// The Engine takes no user id past 2^31 - 1, and a thousand slots have 32 each.
constexpr std::int64_t kUidFirstMost = 2'147'000'000;

bool is_absolute(const std::string& path) { return path.starts_with('/'); }

// "0-3,8": numbers and ranges.
bool is_cpuset(const std::string& text) {
  bool digit_before = false;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit && (!digit_before || (c != ',' && c != '-'))) return false;
    digit_before = digit;
  }
  return digit_before;
}

// "left=right" or "left:right", both present.
std::optional<std::pair<std::string, std::string>> halves(const std::string& text, char between) {
  const std::size_t at = text.find(between);
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) return {};
  return std::pair{text.substr(0, at), text.substr(at + 1)};
}

std::vector<std::string> listed(const std::map<std::string, std::string>& pairs) {
  std::vector<std::string> list;
  list.reserve(pairs.size());
  for (const auto& [name, value] : pairs) list.push_back(std::string(name).append("=").append(value));
  return list;
}

void add_gpu(std::vector<Option>& all) {
  Option mode{"gpu.mode",
              "one of \"auto\", \"nvidia\", \"cdi\", \"devices\", \"none\"",
              "How a GPU gets into a container: `nvidia`: by the NVIDIA container runtime; `cdi`: by the Container "
              "Device Interface; `devices`: "
              "device nodes and the driver's files as listed below, which needs neither. `auto` takes the first "
              "that is there.",
              {},
              {}};
  mode.set = [](Config& c, const Value& value) {
    const auto* name = std::get_if<std::string>(&value);
    const auto named = name ? gpu::mode_named(*name) : std::nullopt;
    if (named) c.attach.mode = *named;
    return named.has_value();
  };
  mode.show = [](const Config& c) { return quoted(gpu::name_of(c.attach.mode)); };
  all.push_back(std::move(mode));
  all.push_back(flag("gpu.use", PLACE(slots.gpus), "Grade on the GPUs that the driver lists, one slot each."));
  all.push_back(texts(
      "gpu.excluded", "a list of GPU UUIDs", "GPUs to leave alone.", [](Config& c) { c.slots.gpus_excluded.clear(); },
      [](Config& c, const std::string& text) {
        c.slots.gpus_excluded.push_back(text);
        return text.starts_with("GPU-") || text.starts_with("MIG-");
      },
      [](const Config& c) { return c.slots.gpus_excluded; }));
  all.push_back(texts(
      "gpu.cpusets", "a list of \"UUID=CPUs\", as in \"GPU-1234=0-15\"",
      "The CPUs of a GPU's slot; best those near it, each to one slot. "
      "Without: all.",
      [](Config& c) { c.slots.gpu_cpusets.clear(); },
      [](Config& c, const std::string& text) {
        const auto both = halves(text, '=');
        return both && is_cpuset(both->second) && c.slots.gpu_cpusets.insert(*both).second;
      },
      [](const Config& c) { return listed(c.slots.gpu_cpusets); }));
  all.push_back(number("gpu.faults_max", PLACE(slots.gpu_faults_max), 1, 100,
                       "Gradings in a row that a GPU's own fault may end before it is quarantined."));
  all.push_back(texts(
      "gpu.nodes", "a list of absolute paths",
      "Mode `devices`: device nodes besides /dev/nvidiactl, /dev/nvidia-uvm and the GPU's own.",
      [](Config& c) { c.attach.nodes.clear(); },
      [](Config& c, const std::string& text) {
        c.attach.nodes.push_back(text);
        return is_absolute(text);
      },
      [](const Config& c) { return c.attach.nodes; }));
  all.push_back(texts(
      "gpu.mounts", "a list of \"/here:/in/the/container\"",
      "Mode `devices`: the driver's libraries and tools, mounted read-only.",
      [](Config& c) { c.attach.mounts.clear(); },
      [](Config& c, const std::string& text) {
        const auto both = halves(text, ':');
        if (!both || !is_absolute(both->first) || !is_absolute(both->second)) return false;
        c.attach.mounts.push_back({both->first, both->second, true});
        return true;
      },
      [](const Config& c) {
        std::vector<std::string> list;
        list.reserve(c.attach.mounts.size());
        for (const auto& mount : c.attach.mounts) list.push_back(mount.source + ":" + mount.target);
        return list;
      }));
  all.push_back(texts(
      "gpu.env", "a list of \"NAME=value\"",
      "Mode `devices`: environment of containers with a GPU, as in \"LD_LIBRARY_PATH=/usr/lib/nvidia\".",
      [](Config& c) { c.attach.env.clear(); },
      [](Config& c, const std::string& text) {
        const auto both = halves(text, '=');
        return both && c.attach.env.insert(*both).second;
      },
      [](const Config& c) { return listed(c.attach.env); }));
}

void add_slots(std::vector<Option>& all) {
  all.push_back(texts(
      "grader.cpu_slots", "a list of CPU sets, as in \"0-3\", or \"all\"",
      "Slots for the device cpu, a CPU set each; `[]`: none. On a machine "
      "with GPUs keep them apart from the GPUs' CPUs.",
      [](Config& c) { c.slots.cpu_slots.clear(); },
      [](Config& c, const std::string& text) {
        c.slots.cpu_slots.push_back(text == kAllCpus ? "" : text);
        return text == kAllCpus || is_cpuset(text);
      },
      [](const Config& c) {
        std::vector<std::string> list;
        list.reserve(c.slots.cpu_slots.size());
        for (const auto& cpus : c.slots.cpu_slots) list.push_back(cpus.empty() ? kAllCpus : cpus);
        return list;
      }));
  all.push_back(number("grader.uid_first", PLACE(slots.uid_first), 1'000, kUidFirstMost,
                       "First user id of the slots; 32 a slot, which nobody else on the machine may have."));
  all.push_back(number("grader.compile_uid_first", PLACE(grader.compile_uid_first), 1'000, kUidFirstMost,
                       "First user id of the compilers; one for each submission prepared at a time."));
  all.push_back(text("grader.name", PLACE(grader.name), "a name of letters, digits, - and _, 64 at most",
                     "Of this grader: unique per store, the same after a restart.", [](const std::string& s) {
                       return !s.empty() && s.size() <= 64 && std::ranges::all_of(s, [](unsigned char c) {
                         return std::isalnum(c) || c == '-' || c == '_';
                       });
                     }));
  all.push_back(text(
      "grader.work_folder", PLACE(grader.work_folder), "an absolute path",
      "Folders of running attempts; at most 60 bytes, for a socket lies in it. Default: `work` in the data folder.",
      is_absolute));
  all.push_back(text("grader.seccomp_file", PLACE(grader.seccomp_file), "an absolute path",
                     "seccomp profile of all containers. Default: docker/seccomp.json, which is built in.",
                     [](const std::string& s) { return s.empty() || is_absolute(s); }));
  all.push_back(text("grader.base_cpu", PLACE(grader.base_cpu), "an image's name", "Base image of the device cpu."));
  all.push_back(text("grader.base_cuda", PLACE(grader.base_cuda), "an image's name", "Base image of the device cuda."));
  all.push_back(text("grader.gpu_arch", PLACE(grader.gpu_arch), "a compute capability, as in \"90a\"",
                     "What CUDA submissions are compiled for.", [](const std::string& s) {
                       return s.size() >= 2 && std::ranges::all_of(s, [](unsigned char c) { return std::isalnum(c); });
                     }));
  all.push_back(number("grader.prepare_ahead", PLACE(grader.prepare_ahead), 0, 64,
                       "Of each device, submissions made ready while all its slots are busy."));
}

void add_deadlines(std::vector<Option>& all) {
  const auto deadline = [&](const char* key, auto place, const char* doc) {
    all.push_back(duration(key, place, 100ms, 24h, doc));
  };
  deadline("grader.reference_deadline", PLACE(grader.reference_deadline),
           "To compile a task's reference; past it `infra_error`.");
  deadline("grader.compile_deadline", PLACE(grader.compile_deadline),
           "To compile a submission; past it the verdict `timeout`.");
  deadline("grader.measure_deadline", PLACE(grader.measure_deadline),
           "For the measuring container; past it the verdict `timeout`.");
  deadline("grader.container_slack", PLACE(grader.container_slack),
           "A container's own life beyond the deadline of what it runs.");
  deadline("grader.claim_wait", PLACE(grader.claim_wait), "One wait for work.");
  deadline("grader.renew_every", PLACE(grader.renew_every),
           "Between two looks at the lease; also how soon a cancel is seen.");
  all.push_back(duration("grader.stop_grace", PLACE(grader.stop_grace), 100ms, 45s,  // kbenchd ends after 50 s
                         "For attempts to remove their containers at shutdown; what is left the next start removes."));
  deadline("grader.health_every", PLACE(grader.health_every), "Between two looks at Engine, disk and GPUs.");
  deadline("grader.reconcile_every", PLACE(grader.reconcile_every), "Between two searches for containers nobody owns.");
  deadline("grader.prune_every", PLACE(grader.prune_every), "Between two clearings of old images.");
  const auto verifier = [&](const char* key, auto place, const char* doc) {
    all.push_back(seconds(key, place, 1s, 24h, doc));
  };
  verifier("verifier.load", PLACE(grader.verifier.load), "To load a shared object.");
  verifier("verifier.load_python", PLACE(grader.verifier.load_python), "To import a Python submission.");
  verifier("verifier.prepare", PLACE(grader.verifier.prepare), "The first, untimed call of a worker run.");
  verifier("verifier.prepare_python", PLACE(grader.verifier.prepare_python),
           "The same in Python, where compilers run in it.");
  verifier("verifier.repetition", PLACE(grader.verifier.repetition), "One timed call.");
  verifier("verifier.measure", PLACE(grader.verifier.measure), "All of a grading's calls.");
  verifier("verifier.conditions", PLACE(grader.verifier.conditions),
           "Waiting for a quiet, cool GPU; past it `infra_error`.");
}

void add_limits(std::vector<Option>& all) {
  constexpr std::int64_t kLeast = kMiB, kMost = 4096 * kGiB;
  const auto bytes = [&](const char* key, auto place, const char* doc) {
    all.push_back(size(key, place, kLeast, kMost, doc));
  };
  Option cpus = texts(
      "grader.compile_cpus", "a list of one CPU set, as in [\"0-1\"]",
      "The CPUs that compilers run on, best apart from the slots'. Without: all.",
      [](Config& c) { c.grader.compile_cpuset.clear(); },
      [](Config& c, const std::string& text) {
        const bool first = c.grader.compile_cpuset.empty();
        c.grader.compile_cpuset = text;
        return first && is_cpuset(text);
      },
      [](const Config& c) {
        return c.grader.compile_cpuset.empty() ? std::vector<std::string>{} : std::vector{c.grader.compile_cpuset};
      });
  all.push_back(std::move(cpus));
  bytes("grader.compile_memory", PLACE(grader.compile_memory_bytes),
        "Memory of a compile container; there is no swap.");
  bytes("grader.compile_tmp", PLACE(grader.compile_tmp_bytes), "Its /tmp, in memory.");
  bytes("grader.compile_file", PLACE(grader.compile_file_bytes), "A file that it writes.");
  all.push_back(
      number("grader.compile_pids_max", PLACE(grader.compile_pids_max), 16, 100'000, "Its processes and threads."));
  bytes("grader.measure_memory", PLACE(grader.measure_memory_bytes),
        "Memory of a measuring container; past it the verdict `out_of_memory`.");
  bytes("grader.measure_tmp", PLACE(grader.measure_tmp_bytes), "Its /tmp, in memory.");
  bytes("grader.measure_shm", PLACE(grader.measure_shm_bytes), "Its /dev/shm.");
  bytes("grader.measure_file", PLACE(grader.measure_file_bytes),
        "A file that it writes, which a cpu task's tensors are, too.");
  all.push_back(
      number("grader.measure_pids_max", PLACE(grader.measure_pids_max), 16, 100'000, "Its processes and threads."));
  all.push_back(
      number("grader.nofile_max", PLACE(grader.nofile_max), 64, 1'000'000, "Open files of a process in either."));
  bytes("grader.artefact_bytes_max", PLACE(grader.artefact_bytes_max), "What a compilation may yield.");
  all.push_back(number("grader.artefact_files_max", PLACE(grader.artefact_files_max), 1, 100'000, "Files of it."));
  bytes("grader.details_bytes_max", PLACE(grader.details_bytes_max), "details.json of a grading.");
  all.push_back(size("grader.log_bytes_max", PLACE(grader.log_bytes_max), kKiB, 64 * kMiB, "A submission's log."));
  bytes("grader.disk_free_min", PLACE(grader.disk_free_bytes_min),
        "Free space under the Engine's data root and the work folder; below it no work is taken.");
  all.push_back(duration("grader.full_disk_pause", PLACE(grader.full_disk_pause), 1s, 24h,
                         "No work is taken for so long after the Engine said that its disk is full."));
  all.push_back(duration("grader.image_age_max", PLACE(grader.image_age_max), 1h, 24h * 3650,
                         "Task images unused for so long are removed."));
  bytes("grader.images_bytes_max", PLACE(grader.images_bytes_max),
        "All task images, without their bases; the longest unused go first.");
  all.push_back(texts(
      "grader.ranked_devices", "a list of \"cuda\" and \"cpu\"", "Devices whose results may be ranked.",
      [](Config& c) { c.grader.ranked_devices.clear(); },
      [](Config& c, const std::string& text) {
        c.grader.ranked_devices.push_back(text);
        return text == "cuda" || text == "cpu";
      },
      [](const Config& c) { return c.grader.ranked_devices; }));
}

void add_submissions(std::vector<Option>& all) {
  all.push_back(number("submissions.files_max", PLACE(submissions.files_max), 1, sources::kFilesMax, "Files."));
  all.push_back(
      size("submissions.file_bytes_max", PLACE(submissions.file_bytes_max), kKiB, sources::kFileBytesMax, "One file."));
  all.push_back(size("submissions.files_bytes_max", PLACE(submissions.files_bytes_max), kKiB, sources::kAllBytesMax,
                     "All files."));
  all.push_back(number("submissions.path_bytes_max", PLACE(submissions.path_bytes_max), 16, 4'000,
                       "A file's name with its folders."));
  all.push_back(number("submissions.labels_max", PLACE(submissions.labels_max), 0, 1'000, "Labels."));
  all.push_back(size("submissions.label_name_bytes_max", PLACE(submissions.label_name_bytes_max), 1, 64 * kKiB,
                     "A label's name."));
  all.push_back(size("submissions.label_value_bytes_max", PLACE(submissions.label_value_bytes_max), 1, 64 * kKiB,
                     "A label's value."));
  all.push_back(number("submissions.priority_min", PLACE(submissions.priority_min), -1'000, 0,
                       "The lowest priority to ask for."));
  all.push_back(number("submissions.priority_max", PLACE(submissions.priority_max), 0, 1'000, "The highest."));
  all.push_back(size("submissions.idempotency_key_bytes_max", PLACE(submissions.idempotency_key_bytes_max), 16,
                     4 * kKiB, "An Idempotency-Key."));
  all.push_back(number("submissions.retry_after", PLACE(submissions.retry_after_s), 1, 3'600,
                       "Seconds that a 503 of a full queue asks to wait."));
  all.push_back(
      number("submissions.page_default", PLACE(submissions.page_default), 1, 500, "Submissions in a page of a list."));
  all.push_back(number("submissions.page_max", PLACE(submissions.page_max), 1, 500, "The most that can be asked for."));
}

}  // namespace

Option texts(std::string key, std::string noun, std::string doc, const std::function<void(Config&)>& clear,
             const std::function<bool(Config&, const std::string&)>& add,
             const std::function<std::vector<std::string>(const Config&)>& list) {
  Option o{std::move(key), std::move(noun), std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    const auto* given = std::get_if<List>(&value);
    if (!given) return false;
    clear(c);
    return std::ranges::all_of(
        given->texts, [&](const std::string& text) { return text.find('\0') == std::string::npos && add(c, text); });
  };
  o.show = [=](const Config& c) {
    std::string out;
    for (const std::string& text : list(c)) out += (out.empty() ? "" : ", ") + quoted(text);
    return "[" + out + "]";
  };
  return o;
}

void add_grading(std::vector<Option>& all) {
  add_submissions(all);
  add_gpu(all);
  add_slots(all);
  add_deadlines(all);
  add_limits(all);
}

}  // namespace kbench::config
