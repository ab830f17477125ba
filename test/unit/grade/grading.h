// Runs the real kbench-verify over the task beside this file.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    char name[] = "/tmp/kbench-test-XXXXXX";
    path = ::mkdtemp(name);
    std::filesystem::permissions(path, std::filesystem::perms(0755));
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

inline const std::string kTask = std::string(KBENCH_SOURCE) + "/test/unit/grade/task";

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
inline void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

inline int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
inline int verify(const std::string& arguments) { return run(std::string(KBENCH_VERIFY) + " " + arguments); }

inline int uid_base() { return 300'000 + static_cast<int>(::getpid() % 1000) * 32; }

// Compiled once: the reference is the same for all.
inline const std::string& reference() {
  static const TemporaryFolder folder;
  static const std::string path = [] {
    const std::string library = folder.path + "/reference-cpu.so";
    REQUIRE(verify("reference --tests " + kTask + " --device cpu --out " + library) == 0);
    return library;
  }();
  return path;
}

struct Grading {
  int exit = -1;
  nlohmann::json reward, details, infra;
  std::vector<nlohmann::json> events;
  double value() const { return reward["reward"].get<double>(); }
  std::string verdict() const { return details.value("verdict", ""); }
  std::string reason() const { return details.value("reason", ""); }
};

inline nlohmann::json json_of(const std::string& path) {
  return std::filesystem::exists(path) ? nlohmann::json::parse(text_of(path)) : nlohmann::json();
}

inline Grading grade_folder(const std::string& submission, const std::string& options = "",
                            const std::string& task = kTask) {
  const TemporaryFolder out;
  put(out.path + "/reward.json", R"({"reward": 1000000})");  // planted
  Grading result;
  result.exit = verify("grade --tests " + task + " --submission " + submission + " --device cpu --out " + out.path +
                       (std::filesystem::exists(task + "/reference-cpu.so") ? "" : " --reference " + reference()) +
                       " --uid-base " + std::to_string(uid_base()) + " --prepare-seconds 10 --load-seconds 20 " +
                       options + " 2>" + out.path + "/stderr");
  result.reward = json_of(out.path + "/reward.json");
  result.details = json_of(out.path + "/details.json");
  result.infra = json_of(out.path + "/infra_error.json");
  std::istringstream lines(text_of(out.path + "/events.ndjson"));
  for (std::string line; std::getline(lines, line);) result.events.push_back(nlohmann::json::parse(line));
  INFO(text_of(out.path + "/stderr"));
  CHECK((result.exit == 0 || result.exit == 3));
  return result;
}

inline Grading grade_source(const std::string& source, const std::string& options = "") {
  const TemporaryFolder submission;
  put(submission.path + "/solution.cpp", source);
  return grade_folder(submission.path, options);
}

// A right submission with a place for mischief before and after its work.
inline std::string submission(const std::string& before, const std::string& after, const std::string& globals = "") {
  return "#include \"task.h\"\n#include <cstdlib>\n#include <cstring>\n#include <unistd.h>\n#include "
         "<thread>\n#include <chrono>\n" +
         globals + "\nextern \"C\" int kbench_run(const kbench_args* a, kbench_stream) {\n" + before +
         "\n  for (long long i = 0; i < a->N; ++i) { a->y[i] = a->s * a->x[i]; a->acc[i] += a->x[i]; }\n" + after +
         "\n  return 0;\n}\n";
}
