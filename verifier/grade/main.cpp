#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "verifier/grade/compile.h"
#include "verifier/grade/grade.h"
#include "verifier/protocol/protocol.h"

namespace {

using namespace kbench::grade;

struct CompileOptions {
  CompileRequest request;
  long seconds = 120;
};
struct ReferenceOptions {
  std::string tests, device = "cpu", out, arch = "90a";
  bool all = false;
};

int run_compile(CompileOptions& options) {
  options.request.limits.wall = std::chrono::seconds(options.seconds);
  const CompileResult result = compile_submission(options.request);
  write_compile_json(options.request.out, result);
  if (!result.ok) std::fputs(result.log.c_str(), stderr);
  return result.ok ? kExitOk : kExitCompileError;
}

int run_reference(const ReferenceOptions& options) {
  compile_reference(options.tests, options.device, options.arch, options.out, options.all);
  return kExitOk;
}

void add_compile(CLI::App& app, CompileOptions& o) {
  auto* sub = app.add_subcommand(
      "compile",
      "Compile a submission; writes OUT/artefact and OUT/compile.json. Exit: 0 ok, 1 compile error, 2 other.");
  sub->add_option("--task", o.request.task, "Folder with task.h")->required()->check(CLI::ExistingDirectory);
  sub->add_option("--submission", o.request.submission, "Folder with the sources")
      ->required()
      ->check(CLI::ExistingDirectory);
  sub->add_option("--out", o.request.out, "Folder for the results")->required()->check(CLI::ExistingDirectory);
  sub->add_option("--device", o.request.device, "cpu or cuda")->required()->check(CLI::IsMember({"cpu", "cuda"}));
  sub->add_option("--language", o.request.language, "cpp, cuda or python; from the files when not given");
  sub->add_option("--arch", o.request.arch, "GPU architecture for nvcc")->capture_default_str();
  sub->add_option("--seconds", o.seconds, "Wall clock limit of the compiler")
      ->capture_default_str()
      ->check(CLI::Range(1L, 3600L));
}

void add_reference(CLI::App& app, ReferenceOptions& o) {
  auto* sub = app.add_subcommand("reference",
                                 "Compile DIR/reference.h with DIR/task.h to a library that exports kbench_reference.");
  sub->add_option("--tests", o.tests, "Folder with task.h and reference.h")->required()->check(CLI::ExistingDirectory);
  sub->add_option("--device", o.device, "cpu or cuda")->required()->check(CLI::IsMember({"cpu", "cuda"}));
  sub->add_option("--out", o.out, "The library")->required();
  sub->add_option("--arch", o.arch, "GPU architecture for nvcc")->capture_default_str();
  sub->add_flag("--all", o.all, "Also export kbench_independent and kbench_control (an author's header)");
}

void add_grading(CLI::App* sub, Options& o, bool measuring) {
  if (measuring) {
    sub->add_option("--task", o.tests, "Folder with task.json, task.h and reference.h")
        ->required()
        ->check(CLI::ExistingDirectory);
  } else {
    sub->add_option("--tests", o.tests, "Folder with task.json, task.h and reference.h")
        ->required()
        ->check(CLI::ExistingDirectory);
    sub->add_option("--artefact", o.artefact, "Folder with what `compile` made")->check(CLI::ExistingDirectory);
  }
  auto* sources = sub->add_option("--submission", o.submission, "Folder with sources, compiled first")
                      ->check(CLI::ExistingDirectory);
  if (measuring) sources->required();
  auto* out = sub->add_option("--out", o.out, "Folder for reward.json, details.json, events.ndjson")
                  ->check(CLI::ExistingDirectory);
  if (!measuring) out->required();
  sub->add_option("--device", o.device, "cpu, cuda or auto")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  sub->add_option("--report", o.report, "Folder with report.sock, to send events to");
  sub->add_option("--uid-base", o.uid_base, "First of the uids that workers run under")
      ->capture_default_str()
      ->check(CLI::Range(1000u, 0xfffffff0u));
  sub->add_option("--language", o.language, "cpp, cuda or python; from the files when not given");
  sub->add_option("--reference", o.reference, "Compiled reference; else DIR/reference-<device>.so, else compiled")
      ->check(CLI::ExistingFile);
  sub->add_option("--scratch", o.scratch, "Private folder for a compiled reference")->check(CLI::ExistingDirectory);
  sub->add_option("--arch", o.arch, "GPU architecture for nvcc")->capture_default_str();
  sub->add_option("--conditions", o.conditions,
                  "enforce: wait and void runs on complaints about the device; record: flag the result.\n"
                  "By default enforce on cuda, record on cpu")
      ->check(CLI::IsMember({"enforce", "record"}));
  auto seconds = [&](const char* name, double& value, const char* text) {
    sub->add_option(name, value, text)->capture_default_str()->check(CLI::Range(0.1, 86400.0));
  };
  seconds("--compile-seconds", o.deadlines.compile, "Limit of the compiler");
  seconds("--load-seconds", o.deadlines.load, "Limit from a worker's start to ready");
  seconds("--load-python-seconds", o.deadlines.load_python, "The same for Python");
  seconds("--prepare-seconds", o.deadlines.prepare, "Limit of the untimed first call of a shape");
  seconds("--prepare-python-seconds", o.deadlines.prepare_python, "The same for Python");
  seconds("--repetition-seconds", o.deadlines.repetition, "Limit of a timed call");
  seconds("--measure-seconds", o.deadlines.measure, "Limit of all calls together");
  seconds("--conditions-seconds", o.deadlines.conditions, "Limit of waiting for a quiet, cool device");
}

int run_grade(Options& options) {
  if (options.artefact.empty() == options.submission.empty()) {
    std::fputs("exactly one of --artefact and --submission is needed\n", stderr);
    return kExitUsage;
  }
  return grade(options);
}

int run_measure(Options& options) {
  options.table = true;
  if (!options.out.empty()) return run_grade(options);
  const ScratchFolder out("/tmp");
  options.out = out.path();
  return run_grade(options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "kbench-verify: compiles, checks and times one submission.\n"
      "grade and measure must run as root: submissions run under uids of their own."};
  app.set_version_flag("--version", std::string("kbench-verify ") + kVersion + ", protocol " +
                                        std::to_string(kbench::protocol::kVersion));
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // inherited by the subcommands
  CompileOptions compile;
  ReferenceOptions reference;
  Options grading, measuring;
  add_compile(app, compile);
  add_reference(app, reference);
  add_grading(
      app.add_subcommand(
          "grade",
          "Grade a submission. Exit: 0 with OUT/reward.json whatever the verdict, 3 with OUT/infra_error.json."),
      grading, false);
  add_grading(app.add_subcommand(
                  "measure", "The author's own check with the visible reference: the same flow, a table on stdout."),
              measuring, true);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  try {
    if (app.got_subcommand("compile")) return run_compile(compile);
    if (app.got_subcommand("reference")) return run_reference(reference);
    return app.got_subcommand("grade") ? run_grade(grading) : run_measure(measuring);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "kbench-verify: %s\n", fault.what());
    return app.got_subcommand("grade") || app.got_subcommand("measure") ? kExitInfra : kExitUsage;
  }
}
