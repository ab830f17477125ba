// Inside grade/: a worker and the folder it lives in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "verifier/grade/session.h"

namespace kbench::grade {

// Files in a folder of the uid's, with the folders they need.
void lay_out_under(uid_t uid, const std::string& folder, const std::vector<Source>& files);

enum class Host : std::uint8_t { native, python };

// A started worker under a uid of its own. `end` kills it and wipes all its uid owns; the destructor does too, if
// nobody has.
class RunningWorker {
 public:
  // files: written into its home, under submission/. program: a library elsewhere; empty: what is among the files.
  RunningWorker(const Session& session, uid_t uid, Host host, const std::vector<Source>& files,
                const std::string& program, const protocol::Setup& setup);
  ~RunningWorker();
  RunningWorker(const RunningWorker&) = delete;
  RunningWorker& operator=(const RunningWorker&) = delete;

  process::WorkerProcess& process() { return *process_; }
  // Throws Finding when it does not come up.
  void await_ready(double deadline_s);
  // One call through the device's window. Throws Finding for everything but done.
  verify::Repetition call(verify::Device& device, protocol::Call what, std::size_t shape, verify::RepetitionPlan plan,
                          double deadline_s, const std::string& where);
  std::string end();  // its output; throws ProcessFault when traces are left

 private:
  uid_t uid_;
  bool ended_ = false;
  std::unique_ptr<process::WorkerProcess> process_;
};

}  // namespace kbench::grade
