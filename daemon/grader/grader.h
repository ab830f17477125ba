// Takes submissions from an AttemptSource and brings each to its verdict in containers: images, compile, wait for a
// slot, measure.
//
// What it leaves on the host while it works: containers with the label kbench.owner=<owner>, folders under work_folder,
// images with the label kbench.image. All are found again and put in order after a crash; nothing else on the host is
// touched.
//
// A container of an attempt that a dead kbenchd left behind is removed and its submission graded again under a new
// attempt number. Collecting what it measured would be cheaper, but the attempt that started it may not publish any
// more, and a second run is the only way to a result that provably exists once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/engine/engine.h"
#include "daemon/gpu/gpu.h"
#include "daemon/grader/attempt_source.h"
#include "daemon/grader/tasks.h"

namespace kbench::grader {

using std::chrono::milliseconds;

struct VerifierSeconds {  // the verifier's own deadlines, handed to it as --<name>-seconds
  double load = 60, load_python = 120, prepare = 60, prepare_python = 180, repetition = 10, measure = 1200,
         conditions = 60;
};

struct Options {
  std::string name = "local";  // of this grader: unique per store, the same after a restart
  std::string owner;           // on containers and images; empty: made once and kept in work_folder
  std::string work_folder = "/var/lib/kbench/work";  // made 0700; short: a socket's path is at most 107 bytes
  std::string seccomp_file;  // JSON profile for all containers; empty: docker/seccomp.json as it was built in
  std::string base_cpu = "kbench/base:cpu", base_cuda = "kbench/base:cuda";
  std::string gpu_arch = "90a";  // what CUDA submissions are compiled for
  int prepare_ahead = 2;         // of each device, submissions made ready while all its slots are busy

  // One deadline a phase. Past image (engine::Options::build_timeout) and reference: infra_error; past compile and
  // measure: timeout.
  milliseconds reference_deadline{600'000};  // compiling a judge's reference
  milliseconds compile_deadline{120'000};    // the compiler
  milliseconds measure_deadline{1'800'000};  // the measuring container; the verifier's own deadlines come first
  milliseconds container_slack{30'000};      // a container's own life beyond the deadline of what it runs
  VerifierSeconds verifier;

  milliseconds claim_wait{2'000}, renew_every{500};  // renew: also how soon a cancel is seen
  milliseconds stop_grace{
      20'000};  // for attempts to remove their containers when stopped; what is left the next start removes
  milliseconds health_every{5'000}, reconcile_every{60'000}, prune_every{600'000};

  std::uint32_t compile_uid_first = 190'000;  // one for each submission prepared at a time
  std::string compile_cpuset;                 // keep it apart from the slots' CPUs where there are enough
  std::int64_t compile_memory_bytes = 8ll << 30, compile_tmp_bytes = 2ll << 30, compile_file_bytes = 512ll << 20;
  std::int64_t compile_pids_max = 512;
  std::int64_t measure_memory_bytes = 16ll << 30, measure_tmp_bytes = 2ll << 30, measure_shm_bytes = 1ll << 30;
  std::int64_t measure_file_bytes = 16ll << 30;  // also of the memfds that hold a cpu task's tensors
  std::int64_t measure_pids_max = 512;
  std::int64_t nofile_max = 4096;

  std::size_t artefact_bytes_max = 512u << 20, artefact_files_max = 256;
  std::size_t details_bytes_max = 32u << 20;  // of details.json; reward.json and infra_error.json: 64 KiB
  std::size_t log_bytes_max = 256u << 10;     // of what GET …/log shows

  std::int64_t disk_free_bytes_min =
      5ll << 30;                         // under the Engine's data root and the work folder; below it no work is taken
  milliseconds full_disk_pause{30'000};  // no work after the Engine said that its disk is full
  std::chrono::hours image_age_max{24 * 14};   // unused for that long
  std::int64_t images_bytes_max = 50ll << 30;  // of task images, without their bases
  std::vector<std::string> ranked_devices = {"cuda"};
};

// What stops it from taking work; part: "engine", "disk", "image" (for the devices it is missing of), "slots",
// "source".
struct Fault {
  std::string part, cause;
};

class Grader {
 public:
  // `tasks`, `source` and `inventory` (null: no GPUs) must outlive it. Throws std::runtime_error with the fix when the
  // work folder or the profile cannot be used, or when another process grades in that folder. `log` gets what an
  // operator should know, from any thread.
  Grader(Options options, engine::Options engine_options, const gpu::SlotOptions& slot_options,
         gpu::AttachOptions attach_options, const Tasks& tasks, AttemptSource& source, gpu::Inventory* inventory,
         std::function<void(const std::string&)> log);
  ~Grader();  // stop()

  // Containers are killed and removed, leases given back. Returns when all threads have ended.
  void stop();
  std::vector<gpu::SlotView> slots() const;
  void release_quarantine(int slot);
  std::vector<Fault> faults() const;  // remembered from the last look; empty: work is being taken
  // Attempts in progress.
  int active() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kbench::grader
