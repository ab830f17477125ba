// The images of a task: found or built, each by one builder at a time however many ask, and thrown away when unused.
// Internal to daemon/grader.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>

#include "daemon/grader/containers.h"
#include "daemon/grader/grader.h"
#include "daemon/grader/work_folder.h"

namespace kbench::grader {

class Images {
 public:
  Images(const Options& options, WorkFolder& work_folder, engine::Engine& engine, Containers& containers,
         const std::atomic<gpu::Mode>& mode, const gpu::AttachOptions& attach, std::string seccomp,
         std::function<void(const std::string&)> log);

  // An image that is not thrown away while this lives.
  class Pinned {
   public:
    Pinned(Images& owner, std::string image);
    Pinned(Pinned&& other) noexcept;
    ~Pinned();
    const std::string& id() const { return id_; }

   private:
    Images* owner_;
    std::string id_;
  };
  // What a submission compiles in. Throws InfraFault, EngineError, Stopped.
  Pinned environment(const Task& task, const std::string& device, const std::stop_token& stop);
  // What it is measured in: private tests and the compiled reference. `uid`: for the compiler of the reference.
  Pinned judge(const Task& task, const std::string& device, std::uint32_t uid, const std::stop_token& stop);

  // Removes images of ours that are too old or too many, with `pressed` all, and those without a name; never one in
  // use. False when building holds it up.
  bool prune(bool pressed = false);

 private:
  struct Flight;
  struct Recipe {
    std::string kind, key;
    std::vector<engine::TarEntry> context;
    std::map<std::string, std::string> args;
  };
  std::string base(const std::string& device);
  Pinned get(const Recipe& recipe, const std::stop_token& stop, const std::function<void(Recipe&)>& complete);
  std::string make(Recipe recipe, const std::stop_token& stop, const std::function<void(Recipe&)>& complete);
  std::string reference(const Task& task, const std::string& device, const std::string& base_id, const Recipe& recipe,
                        std::uint32_t uid, const std::stop_token& stop);
  void remove_nameless(const std::set<std::string>& ids);
  bool removed(const std::function<void()>& removal);

  const Options& options_;
  WorkFolder& work_folder_;
  engine::Engine& engine_;
  Containers& containers_;
  const std::atomic<gpu::Mode>& mode_;
  const gpu::AttachOptions& attach_;
  const std::string seccomp_;
  const std::function<void(const std::string&)> log_;
  std::shared_mutex removal_;  // shared: looking up, building, pinning; exclusive: removing
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;  // by tag
  std::map<std::string, int> pins_;                         // by id
  std::map<std::string, std::int64_t> used_s_;              // by id, since the epoch
};

}  // namespace kbench::grader
