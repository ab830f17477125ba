#include "verifier/grade/worker.h"

#include <string.h>

#include <filesystem>

#include "kbench/events.h"

namespace kbench::grade {
namespace {

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::string text_of(double seconds) {
  std::string text = std::to_string(seconds);
  return text.substr(0, text.find('.') + 2);
}

constexpr std::size_t kLastWords = 200;  // of a line that is quoted

// What a process that ended by itself said last: of a loader that misses a library it is all there is to know.
std::string last_words(const std::string& output) {
  const std::size_t end = output.find_last_not_of('\n');
  if (end == output.npos) return "";
  const std::size_t before = output.rfind('\n', end);
  const std::size_t begin = before == output.npos ? 0 : before + 1;
  return "; last it said: " + output.substr(begin, std::min(end + 1 - begin, kLastWords));
}

constexpr int kCudaOutOfMemory = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

Finding death_of(process::WorkerProcess& worker, const std::string& where) {
  worker.kill();  // reaps: what follows is final
  if (const std::string how = worker.violation(); !how.empty()) {
    return {events::kIntegrityViolation, "protocol", where + ": the worker broke the protocol: " + how};
  }
  const process::ExitFacts facts = worker.exit_facts();
  if (facts.out_of_memory) return {events::kOutOfMemory, "", where + ": the container ran out of memory"};
  if (facts.signal != 0) {
    const char* name = ::sigabbrev_np(facts.signal);
    return {events::kRuntimeError, "", where + ": killed by SIG" + (name ? name : std::to_string(facts.signal))};
  }
  return {events::kRuntimeError, "",
          where + ": the process exited with code " + std::to_string(facts.code) + " before it was told to" +
              last_words(worker.output())};
}

process::Command command_of(const Session& session, uid_t uid, Host host, const std::string& home,
                            const std::string& program) {
  process::Command command;
  if (host == Host::python) {
    command.arguments = {
        "python3",   installed("python") + "/kbench_worker.py", "--task-json",       home + "/task.json",
        "--library", installed("lib") + "/libkbench_worker.so", home + "/submission"};
  } else {
    command.arguments = {installed("bin") + "/kbench-worker",
                         program.empty() ? home + "/submission/submission.so" : program};
  }
  command.uid = uid;
  command.home = home;
  command.can_stop = session.device->facts().kind == "cpu";
  // On the GPU a sleep's wake-up would lie within the window; on the CPU the processor is better left to the worker.
  if (!command.can_stop) command.limits.spin = std::chrono::milliseconds(200);
  return command;
}

}  // namespace

Finding finding_of(process::WorkerProcess& worker, verify::Ended ended, const std::string& where, double deadline_s) {
  switch (ended) {
    case verify::Ended::timed_out:
      return {events::kTimeout, "", where + ": not done after " + text_of(deadline_s) + " s"};
    case verify::Ended::refused: {
      const std::string text = worker.text().empty() ? "" : ": " + worker.text();
      if (worker.status() == protocol::Status::failed) {
        const bool memory = worker.code() == kCudaOutOfMemory;
        return {memory ? events::kOutOfMemory : events::kRuntimeError, "",
                where + ": failed with error " + std::to_string(worker.code()) + text};
      }
      return {events::kRuntimeError, "", where + ": kbench_run returned " + std::to_string(worker.code()) + text};
    }
    default:
      return death_of(worker, where);
  }
}

void lay_out_under(uid_t uid, const std::string& folder, const std::vector<Source>& files) {
  const int made = process::run_as(
      uid,
      [&] {
        std::error_code error;
        std::filesystem::create_directories(folder, error);
        for (const Source& file : files) {
          std::filesystem::create_directories(std::filesystem::path(folder + "/" + file.path).parent_path(), error);
        }
        return error ? 1 : 0;
      },
      std::chrono::seconds(30));
  if (made != 0) throw process::ProcessFault("cannot make folders in " + folder);
  for (const Source& file : files) process::write_file(uid, folder + "/" + file.path, file.content);
}

RunningWorker::RunningWorker(const Session& session, uid_t uid, Host host, const std::vector<Source>& files,
                             const std::string& program, const protocol::Setup& setup)
    : uid_(uid) {
  const std::string home = process::make_folder(uid);
  lay_out_under(uid, home + "/submission", files);
  if (host == Host::python)
    process::write_file(uid, home + "/task.json", read_file(session.options.tests + "/task.json"));
  process_ = process::WorkerProcess::start(command_of(session, uid, host, home, program), setup,
                                           session.workspace->descriptors());
}

RunningWorker::~RunningWorker() {
  if (ended_) return;
  try {
    end();
  } catch (const process::ProcessFault&) {  // an exception is on its way; the next worker has another uid
  }
}

void RunningWorker::await_ready(double deadline_s) {
  const verify::Ended ended = process_->wait_ready(nanoseconds(deadline_s));
  if (ended == verify::Ended::done) return;
  if (ended == verify::Ended::refused) {
    throw Finding(events::kRuntimeError, "", "the submission cannot be loaded: " + process_->text());
  }
  throw finding_of(*process_, ended, "loading", deadline_s);
}

verify::Repetition RunningWorker::call(verify::Device& device, protocol::Call what, std::size_t shape,
                                       verify::RepetitionPlan plan, double deadline_s, const std::string& where) {
  process_->select(what, static_cast<std::uint32_t>(shape));
  plan.epoch = process_->next_epoch();
  plan.deadline = nanoseconds(deadline_s);
  const verify::Repetition repetition = device.repeat(plan, *process_);
  verify::Ended ended = repetition.ended;
  if (process_->ran_out_of_memory() || !process_->violation().empty()) ended = verify::Ended::died;
  if (ended != verify::Ended::done) throw finding_of(*process_, ended, where, deadline_s);
  return repetition;
}

std::string RunningWorker::end() {
  process_->leave();
  ended_ = true;
  process::kill_and_wipe(uid_);
  return process_->output();
}

}  // namespace kbench::grade
