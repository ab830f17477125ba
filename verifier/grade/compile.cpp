#include "verifier/grade/compile.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "verifier/grade/grade.h"
#include "verifier/process/process.h"

namespace kbench::grade {
namespace {

namespace fs = std::filesystem;

constexpr char kCutlass[] = "/opt/cutlass/include";
constexpr char kSymbolHint[] =
    "\nA submission must export, with C linkage:\n"
    "  extern \"C\" int kbench_run(const kbench_args* args, kbench_stream stream)\n";

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) throw GradeFault("files", "cannot write " + path + ": " + std::strerror(errno));
}

void lay_out(const std::vector<Source>& sources, const std::string& folder) {
  for (const Source& source : sources) {
    const std::string path = folder + "/" + source.path;
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    if (error) throw GradeFault("files", "cannot make a folder for " + path + ": " + error.message());
    write_text(path, source.content);
  }
}

bool any(const std::vector<Source>& sources, const char* suffix) {
  return std::any_of(sources.begin(), sources.end(), [&](const Source& s) { return has_suffix(s.path, suffix); });
}

std::string language_of(const std::vector<Source>& sources, const std::string& asked) {
  if (!asked.empty()) return asked;
  if (any(sources, ".cu")) return "cuda";
  if (any(sources, ".cpp")) return "cpp";
  return "python";
}

// Fixed flags: the submission has no say. --require-defined makes a missing entry point a link error.
std::vector<std::string> host_flags() {
  return {"g++", "-std=c++20", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-Wl,--no-undefined"};
}
std::vector<std::string> device_flags(const std::string& arch) {
  std::vector<std::string> flags = {"nvcc",
                                    "-std=c++20",
                                    "-O3",
                                    "-gencode",
                                    "arch=compute_" + arch + ",code=sm_" + arch,
                                    "-shared",
                                    "-Xcompiler",
                                    "-fPIC",
                                    "-cudart",
                                    "static",
                                    "--expt-relaxed-constexpr",
                                    "--extended-lambda",
                                    "-Xlinker",
                                    "--no-undefined"};
  if (fs::is_directory(kCutlass)) flags.insert(flags.end(), {"-I", kCutlass});
  return flags;
}

std::vector<std::string> native_command(const CompileRequest& request, const std::string& language,
                                        const std::vector<Source>& sources, const std::string& build) {
  std::vector<std::string> command = language == "cuda" ? device_flags(request.arch) : host_flags();
  if (language == "cuda") {
    command.insert(command.end(), {"-Xlinker", "--require-defined=kbench_run"});
  } else {
    command.push_back("-Wl,--require-defined=kbench_run");
  }
  for (const std::string& folder : {build + "/src", fs::absolute(request.task).string(), installed("include")})
    command.insert(command.end(), {"-I", folder});
  for (const Source& source : sources) {
    if (has_suffix(source.path, ".cpp") || (language == "cuda" && has_suffix(source.path, ".cu")))
      command.push_back("src/" + source.path);
  }
  command.insert(command.end(), {"-o", "submission.so"});
  return command;
}

std::vector<std::string> python_command(const std::vector<Source>& sources) {
  std::vector<std::string> command = {
      "python3", "-I", "-c",
      "import sys\nfor path in sys.argv[1:]:\n  compile(open(path, 'rb').read(), path[4:], 'exec')"};
  for (const Source& source : sources) {
    if (has_suffix(source.path, ".py")) command.push_back("src/" + source.path);
  }
  return command;
}

// Empty when the files can be what they are said to be.
std::string unsuitable(const std::string& language, const std::string& device, const std::vector<Source>& sources) {
  if (language != "cpp" && language != "cuda" && language != "python") return "there is no language " + language;
  if (language == "cuda" && device != "cuda") return "language cuda needs device cuda";
  if (language == "cpp" && !any(sources, ".cpp")) return "no *.cpp file";
  if (language == "cuda" && !any(sources, ".cu") && !any(sources, ".cpp")) return "no *.cu or *.cpp file";
  const bool has_solution =
      std::any_of(sources.begin(), sources.end(), [](const Source& s) { return s.path == "solution.py"; });
  if (language == "python" && !has_solution) return "no solution.py";
  return "";
}

void keep_artefact(const std::string& language, const std::vector<Source>& sources, const std::string& build,
                   const std::string& out) {
  const std::string folder = out + "/artefact";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) throw GradeFault("files", "cannot make " + folder + ": " + error.message());
  if (language == "python") {
    std::vector<Source> modules = sources;
    std::erase_if(modules, [](const Source& s) { return !has_suffix(s.path, ".py"); });
    return lay_out(modules, folder);
  }
  fs::copy_file(build + "/submission.so", folder + "/submission.so", error);
  if (error) throw GradeFault("files", "cannot keep the artefact: " + error.message());
}

std::string version_of(const std::string& tool, const std::string& folder) {
  const ProcessResult result = run_bounded({tool, "--version"}, folder, {.wall = std::chrono::seconds(20)});
  if (result.exit_code != 0) return "";
  // nvcc says its release in the second line from the end, the others say all in the first.
  if (const auto at = result.log.find("release "); at != std::string::npos)
    return tool + " " + result.log.substr(at, result.log.find('\n', at) - at);
  return result.log.substr(0, result.log.find('\n'));
}

CompileResult refused(std::string log) {
  CompileResult result;
  result.log = std::move(log);
  return result;
}

}  // namespace

std::string installed(const std::string& what) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw GradeFault("files", "cannot find this program's own folder");
  return (self.parent_path().parent_path() / what).string();
}

ScratchFolder::ScratchFolder(const std::string& parent) : path_(parent + "/kbench-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr)
    throw GradeFault("files", "cannot make a folder in " + parent + ": " + std::strerror(errno));
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

CompileResult compile_submission(const CompileRequest& request) {
  std::vector<Source> sources;
  try {
    sources = read_sources(request.submission, request.sources);
  } catch (const BadSubmission& fault) {
    return refused(std::string(fault.what()) + "\n");
  }
  const std::string language = language_of(sources, request.language);
  if (const std::string why = unsuitable(language, request.device, sources); !why.empty()) return refused(why + "\n");
  const ScratchFolder build("/tmp");
  lay_out(sources, build.path() + "/src");
  const auto command =
      language == "python" ? python_command(sources) : native_command(request, language, sources, build.path());
  const ProcessResult ran = run_bounded(command, build.path(), request.limits);
  CompileResult result;
  result.language = language;
  result.exit_code = ran.exit_code;
  result.seconds = ran.seconds;
  result.log = ran.log;
  if (ran.timed_out) result.log += "\nstopped after " + std::to_string(request.limits.wall.count()) + " s\n";
  if (ran.exit_code != 0 && ran.log.find("required symbol") != std::string::npos) result.log += kSymbolHint;
  if (ran.exit_code != 0 || ran.timed_out) return result;
  keep_artefact(language, sources, build.path(), request.out);
  result.compiler = version_of(command.front(), build.path());
  result.ok = true;
  return result;
}

void write_compile_json(const std::string& out, const CompileResult& result) {
  const nlohmann::json json = {{"ok", result.ok},   {"exit_code", result.exit_code}, {"seconds", result.seconds},
                               {"log", result.log}, {"compiler", result.compiler},   {"language", result.language}};
  write_text(out + "/compile.json", json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

CompileResult read_compile_json(const std::string& out) {
  const auto json = nlohmann::json::parse(read_file(out + "/compile.json", 1 << 20), nullptr, false);
  try {
    CompileResult result;
    result.ok = json.at("ok").get<bool>();
    const auto& exit_code = json.at("exit_code");
    if (!exit_code.is_number_integer()) throw GradeFault("compiler", "compile.json: exit_code is no whole number");
    result.exit_code = exit_code.get<int>();
    result.seconds = json.at("seconds").get<double>();
    result.log = process::escaped(json.at("log").get<std::string>(), ProcessLimits{}.log_bytes + 1024);
    result.compiler = process::escaped(json.at("compiler").get<std::string>(), 256);
    result.language = process::escaped(json.at("language").get<std::string>(), 16);
    return result;
  } catch (const nlohmann::json::exception& fault) {
    throw GradeFault("compiler", std::string("compile.json: ") + fault.what());
  }
}

void compile_reference(const std::string& tests, const std::string& device, const std::string& arch,
                       const std::string& out, bool all) {
  const ScratchFolder build("/tmp");
  const std::string source = build.path() + (device == "cuda" ? "/reference.cu" : "/reference.cpp");
  write_text(source, "#include \"task.h\"\n#include \"kbench/parallel.h\"\n#include \"reference.h\"\n" +
                         std::string(all ? "KB_AUTHOR_EXPORTS\n" : "KB_REFERENCE_EXPORTS\n"));
  std::vector<std::string> command = device == "cuda" ? device_flags(arch) : host_flags();
  std::error_code error;
  for (const std::string& folder : {fs::absolute(tests).string(), installed("include")})
    command.insert(command.end(), {"-I", folder});
  command.insert(command.end(), {source, "-o", "reference.so"});
  const ProcessResult ran = run_bounded(command, build.path(), {.wall = std::chrono::seconds(300)});
  if (ran.exit_code != 0 || ran.timed_out) throw GradeFault("reference", "the reference does not compile:\n" + ran.log);
  fs::copy_file(build.path() + "/reference.so", out, fs::copy_options::overwrite_existing, error);
  if (error) throw GradeFault("files", "cannot write " + out + ": " + error.message());
}

}  // namespace kbench::grade
