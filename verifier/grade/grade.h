// kbench-verify: compiles, checks and times one submission; writes what it found.
//
// Three kinds of fault, never mixed: GradeFault (ours: infra_error.json, no reward), Finding (the submission's: a
// verdict, reward 0), and BadSubmission (its files: compile_error).
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "verifier/measure/measure.h"

namespace kbench::grade {

inline constexpr char kVersion[] = "0.1.0";

// Infrastructure. cause: submission, task, reference, device, memory, worker, compiler, conditions, calibration,
// observer, files, image, gpus.
struct GradeFault : std::runtime_error {
  GradeFault(std::string cause_, const std::string& message) : std::runtime_error(message), cause(std::move(cause_)) {}
  std::string cause;
};

// The submission's fault: ends the grading with this verdict (events::kIncorrect, …).
struct Finding : std::runtime_error {
  Finding(std::string verdict_, std::string rule_, const std::string& reason)
      : std::runtime_error(reason), verdict(std::move(verdict_)), rule(std::move(rule_)) {}
  std::string verdict;
  std::string rule;  // of an integrity_violation: guard_write, late_write, protocol, interference, leftovers; of a
                     // rule_violation: kernels_max; else empty
};

struct Deadlines {  // seconds
  double compile = 120;
  double prepare = 60, prepare_python = 180;  // one untimed call, with JIT and autotuning
  double load = 60, load_python = 120;        // from the start of the process to ready
  double repetition = 10;                     // one timed call
  double measure = 1200;                      // all worker runs of a grading together
  double conditions = 60;                     // waiting for a quiet, cool device before a worker run
};

struct Options {
  std::string tests;                 // folder with task.json, task.h, reference.h
  std::string artefact, submission;  // one of them
  std::string device = "auto";       // cpu | cuda | auto
  std::string language;              // empty: from the files
  std::string reference;  // library; empty: tests/reference-<device>.so, else compiled into the scratch folder
  std::string out, report;
  std::string scratch;       // empty: /kbench where it is a folder, else made under /tmp. Private to the verifier
  std::string arch = "90a";  // of the GPU, for nvcc
  uid_t uid_base = 200'000;
  // What complaints about the device (throttling, strangers on it) do. enforce: wait before a run, void one that had
  // them, then an infrastructure fault. record: noted, and the result carries the flag `disturbed`. Empty: enforce on
  // cuda, record on cpu, where nothing is ranked and processors are seldom alone.
  std::string conditions;
  Deadlines deadlines;
  bool table = false;  // measure: print a table on stdout
};

inline constexpr int kUidCompile = 0, kUidTrusted = 1, kUidFirstRun = 2;  // offsets from uid_base
inline constexpr int kUids = 32;

// Exit codes of the subcommands.
inline constexpr int kExitOk = 0, kExitCompileError = 1, kExitUsage = 2, kExitInfra = 3;

int grade(const Options& options);

}  // namespace kbench::grade
