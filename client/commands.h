// One function a command; each prints, and returns the exit code.
#pragma once

#include "client/client.h"

namespace kbench::client {

struct Submit {
  std::vector<std::string> files, labels;  // labels: "name=value"
  std::string task, device, language, gpu_model, idempotency_key, id_file;
  int priority = 0;
  bool wait = false;
};
int submit(Api& api, const Submit& given, bool as_json);
int status(Api& api, const std::string& id, bool as_json);

struct Listing {
  std::string task, state, verdict, device, label;
  int limit = 20;
  bool all = false;
};
int list(Api& api, const Listing& given, bool as_json);
int events(Api& api, const std::string& id, std::int64_t after, bool as_json);
int wait(Api& api, const std::string& id, bool as_json);
int log(Api& api, const std::string& id, bool as_json);
int details(Api& api, const std::string& id);
int cancel(Api& api, const std::string& id, bool as_json);
int tasks(Api& api, const std::string& id, bool as_json);
int gpus(Api& api, bool as_json);

// A folder to work on a task in. Needs no server.
struct StartTask {
  std::string task, folder;        // family/name or name; a new or empty folder
  std::string tasks;               // folder of tasks, as kbench-catalog makes it
  std::string language, device;    // empty: cuda where the task has it
  std::string agent, agent_files;  // where in the folder a coding agent looks for its files; empty: nowhere
};
int start_task(const StartTask& given, bool as_json);
// --tasks, else KBENCH_TASKS, else tasks/ here, else what is installed beside the program.
std::string tasks_folder(const std::string& given, const std::string& program);

}  // namespace kbench::client
