#include "verifier/grade/prepare.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kbench/events.h"
#include "verifier/grade/worker.h"

namespace kbench::grade {
namespace {

namespace fs = std::filesystem;

// Of the memory left after the task's buffers; the rest is for the submission's workspace and the reference's scratch.
constexpr double kSnapshotShare = 0.4;
constexpr int kSpareRuns =
    measure::kHardwareVoidsMax + 1;  // plans beyond kWorkerRuns: voided runs, and one for interference

// The Engine gives a tmpfs the mode of the folder it covers, and makes that folder 0755 where the image has none: what
// lies under it would be open to workers.
std::string private_parent() {
  if (::access("/kbench", W_OK) != 0) return "/tmp";
  if (::chmod("/kbench", 0700) != 0) throw GradeFault("worker", "/kbench cannot be closed to workers");
  return "/kbench";
}

// The first folder above `path` that others may not pass through, or empty.
std::string closed_folder_above(const fs::path& path) {
  fs::path folder;
  for (const fs::path& step : path.parent_path()) {
    folder /= step;
    std::error_code error;
    if ((fs::status(folder, error).permissions() & fs::perms::others_exec) == fs::perms::none) return folder.string();
  }
  return "";
}

// The compiler and the workers run under uids of their own, from the folders beside this program. One that lies in a
// closed home (root's own is, on Debian) is out of their reach, and all they could say of it is "no such file".
void require_reach(const Session& session) {
  for (const char* needed : {"bin/kbench-verify", "bin/kbench-worker", "include/kbench/abi.h"}) {
    std::error_code error;
    const fs::path path = fs::canonical(installed(needed), error);
    if (error)
      throw GradeFault("files", installed(needed) + " is not there: kbench-verify is not built or installed whole");
    const auto reached = [&] { return ::access(path.c_str(), R_OK) == 0 ? 0 : 1; };
    if (process::run_as(session.options.uid_base + kUidTrusted, reached, std::chrono::seconds(30)) == 0) continue;
    const std::string closed = closed_folder_above(path);
    const std::string& fix = closed.empty() ? path.string() : closed;
    throw GradeFault("files", path.string() + " cannot be reached by the users that submissions run under: " + fix +
                                  " is closed to them. Open it (chmod o+rx " + fix +
                                  "), or install elsewhere: cmake --install BUILD --prefix /opt/kbench");
  }
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The compile runs this program again under the uid, with nothing inherited: an environment of its own, and copies of
// the files.
CompileResult compile_under(Session& session, uid_t uid, const std::vector<Source>& sources) {
  const std::string home = process::make_folder(uid);
  const auto as_uid = [&](const std::function<int()>& body, double seconds) {
    return process::run_as(uid, body, std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  };
  lay_out_under(uid, home + "/submission", sources);
  lay_out_under(uid, home + "/task", {{"task.h", read_file(session.options.tests + "/task.h")}});
  const std::string out = home + "/out";
  // The verifier's root may lack DAC_OVERRIDE and must read what comes out.
  const auto open_up = [&] {
    return ::mkdir(out.c_str(), 0755) == 0 && ::chmod(out.c_str(), 0755) == 0 && ::chmod(home.c_str(), 0711) == 0 ? 0
                                                                                                                  : 1;
  };
  if (as_uid(open_up, 30) != 0) throw GradeFault("compiler", "cannot make a folder to compile in");
  const double limit_s = session.options.deadlines.compile;
  std::vector<std::string> arguments = {installed("bin") + "/kbench-verify",
                                        "compile",
                                        "--task",
                                        home + "/task",
                                        "--submission",
                                        home + "/submission",
                                        "--out",
                                        out,
                                        "--device",
                                        session.device->facts().kind,
                                        "--arch",
                                        session.options.arch,
                                        "--seconds",
                                        std::to_string(static_cast<long>(limit_s))};
  if (!session.language.empty()) arguments.insert(arguments.end(), {"--language", session.language});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int code = as_uid(
      [&] {
        char* const environment[] = {nullptr};
        ::umask(022);
        ::execve(argv[0], argv.data(), environment);
        return kExitUsage;
      },
      limit_s + 60);
  if (code != kExitOk && code != kExitCompileError)
    throw GradeFault("compiler", "kbench-verify compile ended with " + std::to_string(code));
  CompileResult result = read_compile_json(out);
  if (result.ok) session.artefact = read_artefact(out + "/artefact", SourceLimits{});
  return result;
}

// Looked at before any of the submission's code runs: what is missing is ours then, and nobody can pretend it is.
void require_python(const Session& session) {
  const auto look = [] {
    ::execlp("python3", "python3", "-I", "-B", "-c",
             "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)", nullptr);
    return 127;
  };
  if (process::run_as(session.options.uid_base + kUidTrusted, look, std::chrono::seconds(60)) != 0)
    throw GradeFault("image",
                     "submissions in python need PyTorch, and there is none; scripts/build-base --python makes a "
                     "kbench/base:cpu that has it");
}

void require_language(const Session& session) {
  if (!contains(session.problem.languages, session.language)) {
    throw Finding(events::kCompileError, "", "the task does not admit language " + session.language);
  }
  if (session.python()) require_python(session);
}

}  // namespace

void load_task(Session& session) {
  if (::geteuid() != 0)
    throw GradeFault("worker", "the verifier must be root: it runs submissions under uids of their own");
  require_reach(session);
  session.problem = spread(load_problem(session.options.tests + "/task.json"));
  session.scratch =
      std::make_unique<ScratchFolder>(session.options.scratch.empty() ? private_parent() : session.options.scratch);
  session.measure_seconds_left = session.options.deadlines.measure;
  session.language = session.options.language;
}

void open_device(Session& session) {
  const std::string& asked = session.options.device;
  if (asked != "cpu") {
    try {
      session.device = verify::open_cuda_device(session.problem.gpus);
    } catch (const verify::DeviceFault&) {
      if (asked != "auto") throw;
    }
  }
  if (!session.device) session.device = verify::open_cpu_device();
  const std::string kind = session.device->facts().kind;
  if (!contains(session.problem.devices, kind)) throw GradeFault("task", "the task is not for device " + kind);
}

void take_artefact(Session& session) {
  try {
    if (!session.options.artefact.empty()) {
      session.artefact = read_artefact(session.options.artefact, SourceLimits{});
      const bool native = session.artefact.front().path == "submission.so";
      if (session.language.empty())
        session.language = !native ? "python" : session.device->facts().kind == "cuda" ? "cuda" : "cpp";
      return require_language(session);
    }
    const Phase phase(session, "compile");
    std::vector<Source> sources = read_sources(session.options.submission, SourceLimits{});
    const uid_t uid = session.options.uid_base + kUidCompile;
    session.compiled = compile_under(session, uid, sources);
    process::kill_and_wipe(uid);
  } catch (const BadSubmission& fault) {
    throw Finding(events::kCompileError, "", fault.what());
  }
  const CompileResult& compiled = session.compiled;
  session.reporter->event(
      events::kCompiled,
      {{"ok", compiled.ok}, {"seconds", compiled.seconds}, {"log", compiled.log}, {"exit_code", compiled.exit_code}});
  if (!compiled.ok) throw Finding(events::kCompileError, "", compiled.log.substr(0, 2000));
  session.language = compiled.language;
  require_language(session);
}

void load_reference(Session& session) {
  const Phase phase(session, "reference");
  const std::string kind = session.device->facts().kind;
  std::string path = session.options.reference;
  if (path.empty()) path = session.options.tests + "/reference-" + kind + ".so";
  if (session.options.reference.empty() && ::access(path.c_str(), R_OK) != 0) {
    path = session.scratch->path() + "/reference.so";
    compile_reference(session.options.tests, kind, session.options.arch, path, false);
  }
  void* library = ::dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);  // kept until the end of the process
  void* symbol = library != nullptr ? ::dlsym(library, "kbench_reference") : nullptr;
  if (symbol == nullptr) throw GradeFault("reference", std::string("cannot load the reference: ") + ::dlerror());
  session.reference = reinterpret_cast<verify::Device::Reference*>(symbol);
}

void make_workspace(Session& session) {
  const Problem& problem = session.problem;
  std::vector<Shape> shapes = problem.graded_on(session.device->facts().kind);
  session.graded = shapes.size();
  try {
    for (const Shape& shape : shapes) session.work.push_back(problem.credited(shape.dims));
    for (const Tensor& tensor : problem.tensors)
      session.rules.push_back(tensor.role == Role::input ? nullptr : compare::parse(tensor));
  } catch (const compare::BadRule& fault) {
    throw GradeFault("task", fault.what());
  } catch (const BadExpression& fault) {
    throw GradeFault("task", fault.what());
  }
  for (int i = 0; i < measure::kOddShapes && shapes.size() < protocol::kShapesMax; ++i) {
    if (auto shape = measure::draw_odd(session.secrets, problem, i)) shapes.push_back(std::move(*shape));
  }
  session.workspace = std::make_unique<Workspace>(*session.device, problem, std::move(shapes));
  session.seen.resize(session.workspace->shapes().size());
}

void draw_plans(Session& session) {
  const Workspace& work = *session.workspace;
  const std::size_t shapes = work.shapes().size();
  std::vector<std::uint64_t> bytes;
  std::uint64_t taken = 0;
  for (std::size_t s = 0; s < session.graded; ++s) bytes.push_back(work.output_bytes(s)), taken += 2 * bytes.back();
  for (std::size_t s = session.graded; s < shapes; ++s) taken += work.output_bytes(s);
  const auto room = static_cast<std::uint64_t>(static_cast<double>(session.device->free_bytes()) * kSnapshotShare);
  try {
    session.compared = measure::compared_per_run(session.check_seconds, bytes, room > taken ? room - taken : 0);
  } catch (const measure::NotCredible& fault) {
    throw GradeFault("memory", fault.what());
  }
  session.pool.sets.resize(shapes);
  session.pool.extras.resize(shapes);
  for (std::size_t s = 0; s < shapes; ++s) {
    const int sets = s < session.graded ? session.compared[s] : 1;
    for (int i = 0; i < sets; ++i) session.pool.sets[s].push_back(work.make_snapshot(s));
    for (int i = 0; i < (s < session.graded && sets < measure::kRepetitions ? 2 : 0); ++i) {
      session.pool.extras[s].push_back(work.make_snapshot(s));
    }
  }
  for (int run = 0; run < measure::kWorkerRuns + kSpareRuns; ++run) {
    session.plans.push_back(measure::draw_run(session.secrets, static_cast<int>(session.graded), session.compared));
  }
  for (std::size_t s = session.graded; s < shapes; ++s)
    session.odd_plans.push_back(measure::draw_run(session.secrets, 1, {1}));
}

}  // namespace kbench::grade
