// kbench task start: a folder to work on one task in, from the task's own folder.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "client/commands.h"

namespace kbench::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::map<std::string, std::string> kStubs = {
    {"cuda", "solution.cu"}, {"cpp", "solution.cpp"}, {"python", "solution.py"}};

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text, bool program = false) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw UsageError(path.string() + ": cannot be written");
  if (program) fs::permissions(path, fs::perms(0755));
}

// Folders with task.json below `root` whose id, or name alone, is `name`.
fs::path task_folder(const std::string& root, const std::string& name) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& family : fs::directory_iterator(root, none)) {
    if (!family.is_directory()) continue;
    for (const auto& task : fs::directory_iterator(family.path())) {
      const std::string id = family.path().filename().string() + "/" + task.path().filename().string();
      if ((id == name || task.path().filename() == name) && fs::exists(task.path() / "environment" / "task.json"))
        found.push_back(task.path());
    }
  }
  if (none) throw UsageError(root + ": no such folder of tasks; name one with --tasks");
  if (found.empty()) throw UsageError(name + ": no such task in " + root);
  if (found.size() > 1) throw UsageError(name + ": in several families; write family/name");
  return found[0];
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string measure_script(const std::string& device, int gpus) {
  std::string all = "${GPU:-0}";
  for (int gpu = 1; gpu < gpus; ++gpu) {
    const std::string number = std::to_string(gpu);
    all += ",${GPU_" + number + ":-" + number + "}";
  }
  // Docker reads the value as a line of CSV: a list within it wants quotes of its own.
  const std::string wanted = gpus > 1 ? "\\\"device=" + all + "\\\"" : "device=" + all;
  const std::string gpu = device == "cuda" ? " --gpus \"" + wanted + "\"" : "";
  return "#!/bin/sh\n"
         "# What the judge would find, with the visible reference: checked, and timed. Here, where kbench-verify is "
         "installed and\n"
         "# this is root; else in the base image (KBENCH_BASE). Options go to kbench-verify measure.\n"
         "cd \"$(dirname \"$0\")\" || exit 2\n"
         "if command -v kbench-verify >/dev/null && [ \"$(id -u)\" = 0 ]; then\n"
         "  exec kbench-verify measure --task task --submission solution --device " +
         device +
         " \"$@\"\n"
         "fi\n"
         "exec docker run --rm --network none" +
         gpu +
         " -v \"$PWD/task:/task:ro\" -v \"$PWD/solution:/app/solution:ro\" \\\n"
         "  \"${KBENCH_BASE:-kbench/base:" +
         device +
         "}\" \\\n"
         "  kbench-verify measure --task /task --submission /app/solution --device " +
         device + " \"$@\"\n";
}

std::string submit_script(const std::string& id, const std::string& device) {
  return "#!/bin/sh\n# Hands in solution/ and waits for the verdict. KBENCH_URL and KBENCH_TOKEN say where.\n"
         "cd \"$(dirname \"$0\")\" || exit 2\nexec kbench submit solution --task " +
         id + " --device " + device + " --wait \"$@\"\n";
}

// The judge's own compiler call, in the judge's own toolchain.
std::string compile_command(const std::string& device) {
  return "    docker run --rm -v \"$PWD/task:/task:ro\" -v \"$PWD/solution:/app/solution:ro\" "
         "\"${KBENCH_BASE:-kbench/base:" +
         device +
         "}\" \\\n"
         "      kbench-verify compile --task /task --submission /app/solution --device " +
         device + " --out /tmp\n";
}

std::string readme(const std::string& id, const std::string& title, const std::string& stub,
                   const std::string& device) {
  const std::string python =
      stub == "solution.py" ? "PyTorch must be in the base image: kbench/base:cuda has it, scripts/build-base --python "
                              "adds it to kbench/base:cpu.\n\n"
                            : "";
  return "# " + title + "\n\nTask " + id + ", for the " + device +
         " device.\n\n"
         "    task/instruction.md     what to compute, and how it is judged. Read it first; /task there is task/ "
         "here,\n"
         "                            /app/solution is solution/\n"
         "    task/task.h             the arguments\n"
         "    task/reference.h        a correct but slow version; task/reference.py the same for Python\n"
         "    solution/" +
         stub + std::string(stub.size() < 15 ? 15 - stub.size() : 1, ' ') +
         "where to work: it builds, writes nothing and scores 0. All files in solution/ are handed in\n"
         "    ./measure               checks and times it, as the judge would\n"
         "    ./submit                hands it in\n\n"
         "task.h and reference.h include the SDK, <kbench/*.h>: /opt/kbench/include in the base image, sdk/ in "
         "kbench's\n"
         "sources. An editor needs -std=c++20 -I task -I THAT_FOLDER. A quick check that it compiles, with the "
         "judge's\n"
         "own compiler and options, and nothing run (it prints what is wrong, or nothing):\n\n" +
         compile_command(device) + "\n" + python +
         "Only solution/ counts. What is in task/ is a copy: changing it changes nothing for the judge.\n";
}

// The folder with skills/ and agents/.
fs::path agent_source(const StartTask& given) {
  const fs::path from = given.agent_files.empty() ? fs::path(given.tasks) / "../agent" : fs::path(given.agent_files);
  for (const char* part : {"skills", "agents"})
    if (!fs::is_directory(from / part))
      throw UsageError((from / part).string() + ": no such folder; name the one above it with --agent-files");
  return from;
}

}  // namespace

std::string tasks_folder(const std::string& given, const std::string& program) {
  if (!given.empty()) return given;
  if (const char* variable = std::getenv("KBENCH_TASKS"); variable != nullptr && *variable != '\0') return variable;
  std::error_code ignored;
  const fs::path beside = fs::path(program).parent_path() / "../share/kbench/tasks";
  for (const fs::path& place : {fs::path("tasks"), beside})
    if (fs::is_directory(place, ignored)) return place.string();
  return "/usr/share/kbench/tasks";
}

int start_task(const StartTask& given, bool as_json) {
  const fs::path from = task_folder(given.tasks, given.task), to = given.folder;
  if (fs::exists(to) && (!fs::is_directory(to) || !fs::is_empty(to)))
    throw UsageError(to.string() + ": is there already, and not empty");
  const fs::path environment = from / "environment";
  json task;
  std::vector<std::string> languages, devices;
  int gpus = 1;
  try {
    task = json::parse(content_of(environment / "task.json"));
    languages = task.at("languages").get<std::vector<std::string>>();
    devices = task.at("devices").get<std::vector<std::string>>();
    gpus = task.value("gpus", 1);
  } catch (const json::exception& error) {
    throw UsageError((environment / "task.json").string() + ": " + error.what());
  }
  const auto has = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::string device = given.device;
  if (device.empty()) device = has(devices, "cuda") && given.language != "cpp" ? "cuda" : devices.at(0);
  if (!has(devices, device)) throw UsageError("this task has no device " + device);
  std::string language = given.language;
  if (language.empty()) language = device == "cuda" ? "cuda" : "cpp";
  if (!has(languages, language) || !kStubs.contains(language))
    throw UsageError("this task has no language '" + language + "'");
  if (language == "cuda" && device == "cpu") throw UsageError("language cuda is not for the cpu device");

  const fs::path agent = given.agent.empty() ? fs::path() : agent_source(given);

  for (const char* name : {"instruction.md", "task.json", "task.h", "reference.h", "reference.py"})
    write(to / "task" / name, content_of(environment / name));
  const std::string& stub = kStubs.at(language);
  write(to / "solution" / stub, replaced(content_of(environment / "solution" / stub), " /task/", " task/"));
  const std::string id = from.parent_path().filename().string() + "/" + from.filename().string();
  write(to / "measure", measure_script(device, gpus), true);
  write(to / "submit", submit_script(id, device), true);
  write(to / "README.md", readme(id, task.value("title", id), stub, device));
  for (const char* part : {"skills", "agents"}) {
    if (given.agent.empty()) break;
    fs::create_directories(to / given.agent);
    fs::copy(agent / part, to / given.agent / part, fs::copy_options::recursive);
  }
  if (as_json) {
    const json made{{"folder", fs::absolute(to).lexically_normal().string()},
                    {"task", id},
                    {"device", device},
                    {"language", language},
                    {"solution", "solution/" + stub}};
    std::printf("%s\n", made.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s\n", to.c_str());
  }
  return kOk;
}

}  // namespace kbench::client
