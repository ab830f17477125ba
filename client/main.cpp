// kbench: the command line. docs/cli.md describes it.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "client/commands.h"

using namespace kbench::client;

namespace {

constexpr char kDataFolder[] = "/var/lib/kbench";

struct Given {
  std::string url, token_file, data_folder = kDataFolder, id;
  bool as_json = false, no_server = false;
  std::int64_t after = 0;
  int retry_s = 60;
  Submit submit;
  Listing listing;
  StartTask start;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string token_of_file(const std::string& path) {
  auto found = token_in(path);
  if (!found.warning.empty()) std::fprintf(stderr, "warning: the token file %s\n", harmless(found.warning).c_str());
  return std::move(found.token);
}

// --token-file, else KBENCH_TOKEN, else the daemon's own file where this user may read it.
Options options_of(const Given& given) {
  Options options;
  if (!given.url.empty()) options.url = given.url;
  options.patience = std::chrono::seconds(given.retry_s);
  if (!given.token_file.empty()) {
    options.token = token_of_file(given.token_file);
    if (options.token.empty()) throw UsageError(given.token_file + ": no token in it, or it cannot be read");
  } else {
    options.token = environment("KBENCH_TOKEN");
    if (options.token.empty()) options.token = token_of_file(given.data_folder + "/token");
  }
  for (const char c : options.token) {
    if (c <= ' ' || c >= 0x7f) throw UsageError("the token has characters that no token has; is it the right file?");
  }
  return options;
}

CLI::App* command(CLI::App& app, const char* name, const char* text, Given& given, bool takes_id) {
  auto* sub = app.add_subcommand(name, text)->fallthrough();
  if (takes_id) sub->add_option("ID", given.id, "The submission")->required();
  return sub;
}

void describe_submit(CLI::App& app, Given& given) {
  auto& s = given.submit;
  auto* sub = command(app, "submit", "Hand in a submission; prints its id", given, false);
  sub->add_option("FILE", s.files, "Files go to the top folder by their own names; a folder gives all that is in it")
      ->required();
  sub->add_option("--task", s.task, "family/name, or the name alone; see kbench tasks")->required();
  sub->add_option("--device", s.device, "cuda or cpu; default: what the server has, cuda first");
  sub->add_option("--language", s.language, "cuda, cpp or python; default: by the files' names");
  sub->add_option("--gpu-model", s.gpu_model, "As kbench gpus shows it");
  sub->add_option("--priority", s.priority, "Higher first, -10 to 10");
  sub->add_option("--label", s.labels, "name=value; may be repeated")->allow_extra_args(false);
  sub->add_option("--idempotency-key", s.idempotency_key,
                  "The same key never makes a second submission; default: a new one");
  sub->add_option("--id-file", s.id_file, "Write the id there too");
  sub->add_flag("--wait", s.wait, "Show the progress, print the verdict");
}

void describe_list(CLI::App& app, Given& given) {
  auto& l = given.listing;
  auto* sub = command(app, "list", "Submissions, newest first", given, false);
  sub->add_option("--task", l.task);
  sub->add_option("--state", l.state, "queued, preparing, ready, measuring, done, cancelled, failed");
  sub->add_option("--verdict", l.verdict, "correct, incorrect, …, infra_error");
  sub->add_option("--device", l.device, "cuda or cpu");
  sub->add_option("--label", l.label, "name=value");
  sub->add_option("--limit", l.limit, "How many, or with --all: at a time")->check(CLI::Range(1, 200));
  sub->add_flag("--all", l.all, "All of them");
}

void describe_start(CLI::App& app, Given& given) {
  auto& s = given.start;
  auto* task = command(app, "task", "Work on a task", given, false);
  task->require_subcommand(1);
  auto* sub = task->add_subcommand("start", "Lay out a folder to work on a task in")->fallthrough();
  sub->add_option("TASK", s.task, "family/name, or the name alone")->required();
  sub->add_option("DIR", s.folder, "A new or an empty folder")->required();
  sub->add_option("--tasks", s.tasks,
                  "Folder of tasks; default: KBENCH_TASKS, else tasks/ here, else what is installed");
  sub->add_option("--language", s.language, "cuda, cpp or python; default: by the device");
  sub->add_option("--device", s.device, "cuda or cpu; default: cuda where the task has it");
  sub->add_option("--agent", s.agent, "Also the skill and the subagents for a coding agent, into this folder of DIR");
  sub->add_option("--agent-files", s.agent_files, "Where those are; default: agent/ beside the folder of tasks");
}

int run(const CLI::App& app, Given& given) {
  const auto name = app.get_subcommands().at(0)->get_name();
  if (name == "task") {
    std::error_code ignored;
    given.start.tasks = tasks_folder(given.start.tasks, std::filesystem::read_symlink("/proc/self/exe", ignored));
    return start_task(given.start, given.as_json);
  }
  if (name == "doctor") {
    std::optional<Options> server;
    if (!given.no_server) server = options_of(given);
    return doctor(server, given.data_folder, given.as_json);
  }
  Api api(options_of(given));
  if (api.in_the_clear())
    std::fprintf(stderr, "note: the token travels unencrypted to %s\n", api.options().url.c_str());
  if (name == "submit") return submit(api, given.submit, given.as_json);
  if (name == "wait") return wait(api, given.id, given.as_json);
  if (name == "status") return status(api, given.id, given.as_json);
  if (name == "list") return list(api, given.listing, given.as_json);
  if (name == "events") return events(api, given.id, given.after, given.as_json);
  if (name == "log") return log(api, given.id, given.as_json);
  if (name == "details") return details(api, given.id);
  if (name == "cancel") return cancel(api, given.id, given.as_json);
  if (name == "tasks") return tasks(api, given.id, given.as_json);
  return gpus(api, given.as_json);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_DFL);  // kbench events … | head
  Given given;
  given.url = environment("KBENCH_URL");
  CLI::App app{"kbench hands GPU kernels to a kbenchd and shows what it says of them."};
  app.set_version_flag("--version", "kbench " KBENCH_VERSION);
  app.require_subcommand(1);
  app.add_option("--url", given.url, "The server; default: KBENCH_URL, else http://127.0.0.1:8700");
  app.add_option("--token-file", given.token_file,
                 "Holds the token; default: KBENCH_TOKEN, else the daemon's own file");
  app.add_option("--retry-seconds", given.retry_s, "How long to try while the server is away")
      ->check(CLI::Range(0, 86'400));
  app.add_flag("--json", given.as_json, "Print JSON");
  app.footer(
      "Exit codes: 0 done, or correct; 1 another verdict, or doctor found something; 2 wrong usage; 3 refused by the "
      "server;\n"
      "4 the server is away or failed; 5 infrastructure failed the grading; 6 cancelled.");
  describe_submit(app, given);
  describe_list(app, given);
  describe_start(app, given);
  command(app, "wait", "Show a submission's progress, print its verdict", given, true);
  command(app, "status", "One submission", given, true);
  auto* events_of = command(app, "events", "What happens to a submission, until its end", given, true);
  events_of->add_option("--after", given.after, "Start behind this event")->check(CLI::NonNegativeNumber);
  command(app, "log", "What the compiler and the kernel said", given, true);
  command(app, "details", "All that was measured, as JSON", given, true);
  command(app, "cancel", "End a submission", given, true);
  command(app, "tasks", "What can be submitted to; with a name: its instruction", given, false)
      ->add_option("TASK", given.id);
  command(app, "gpus", "What the server measures on, and what it is doing", given, false);
  auto* check = command(app, "doctor", "What a grading needs on this host: what is amiss, and the fix", given, false);
  check->add_option("--data", given.data_folder, "The daemon's data folder");
  check->add_flag("--no-server", given.no_server, "Do not look for a running kbenchd");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kUsage;
  }
  try {
    return run(app, given);
  } catch (const Refused& e) {
    if (given.as_json && !e.body.empty()) std::printf("%s", harmless_json(e.body).c_str());
    std::fprintf(stderr, "kbench: %s\n", e.what());
    return kRefused;
  } catch (const UsageError& e) {
    std::fprintf(stderr, "kbench: %s\n", harmless(e.what()).c_str());
    return kUsage;
  } catch (const Unreachable& e) {
    if (given.as_json && !e.body.empty()) std::printf("%s", harmless_json(e.body).c_str());
    std::fprintf(stderr, "kbench: %s\n", harmless(e.what()).c_str());
    return kUnreachable;
  } catch (const std::exception& e) {  // an answer that is no JSON
    std::fprintf(stderr, "kbench: %s\n", harmless(e.what()).c_str());
    return kUnreachable;
  }
}
