// The one thread that writes. What callers hand it while a commit is under way becomes the next commit, so that one
// fsync makes many writes durable.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "daemon/store/connection.h"

namespace kbench::store {

struct Transaction {
  Connection& db;
  Millis now, steady;                // see Options
  std::vector<std::string> changed;  // submissions to announce after the commit
  bool claimable = false;            // something became claimable
};

class Writer {
 public:
  using Work = std::function<void(Transaction&)>;  // may run more than once: nothing it did before counts then
  using Tend = std::function<void(Connection&)>;   // between two commits: upkeep of the database
  using Announce = std::function<void(const std::vector<std::string>& changed, bool claimable)>;

  struct Clocks {
    std::function<Millis()> now, steady;
  };

  Writer(std::unique_ptr<Connection> connection, int group_size_max, Clocks clocks, Announce announce, Tend tend = {});
  ~Writer();  // finishes what was handed over

  // Blocks until the work is durable; rethrows what it threw, in which case it left nothing behind.
  void run(const Work& work);

 private:
  // Lives where its caller waits.
  struct Job {
    const Work& work;
    std::condition_variable finished = {};
    bool is_finished = false;
    std::exception_ptr error = {};
    std::vector<std::string> changed = {};
    bool claimable = false;
  };
  using Group = std::vector<Job*>;

  void loop();
  bool commit_together(const Group& group);
  void commit_alone(Job& job);
  void perform(Job& job);
  void roll_back();
  std::size_t conclude(const Group& group);  // how many callers there were

  std::unique_ptr<Connection> connection_;
  const std::size_t group_size_max_;
  const Clocks clocks_;
  const Announce announce_;
  const Tend tend_;

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Job*> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kbench::store
