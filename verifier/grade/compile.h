// Inside grade/: from a folder of sources to something a worker loads, and from a reference header to a library.
#pragma once

#include <string>

#include "verifier/grade/sources.h"
#include "verifier/grade/subprocess.h"

namespace kbench::grade {

struct CompileRequest {
  std::string task;  // folder with task.h
  std::string submission;
  std::string out;  // gets artefact/ and compile.json
  std::string device = "cpu";
  std::string language;  // cpp | cuda | python; empty: from the files
  std::string arch = "90a";
  ProcessLimits limits;
  SourceLimits sources;
};

struct CompileResult {
  bool ok = false;
  int exit_code = -1;
  double seconds = 0;
  std::string log;       // escaped; at most ProcessLimits::log_bytes and a line
  std::string compiler;  // its version
  std::string language;
};

// What a submitter got wrong is in the result; throws GradeFault for the rest. Runs under the caller's uid.
CompileResult compile_submission(const CompileRequest& request);
// As OUT/compile.json.
void write_compile_json(const std::string& out, const CompileResult& result);
CompileResult read_compile_json(
    const std::string& out);  // hostile: throws GradeFault when it is not what write_compile_json writes

// tests/reference.h with tests/task.h to a library exporting kbench_reference (all: also kbench_independent and
// kbench_control). Throws GradeFault with the compiler's output.
void compile_reference(const std::string& tests, const std::string& device, const std::string& arch,
                       const std::string& out, bool all);

// Where this program's own things are: ../include, ../lib, ../python beside its bin folder.
std::string installed(const std::string& what);

// A private folder (0700) under `parent`, removed with all in it at the end.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kbench::grade
