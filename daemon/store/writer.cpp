#include "daemon/store/writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kbench::store {

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kPatience = 8;  // a commit waits for company no longer than this part of what the last one took

}  // namespace

Writer::Writer(std::unique_ptr<Connection> connection, int group_size_max, Clocks clocks, Announce announce, Tend tend)
    : connection_(std::move(connection)),
      group_size_max_(static_cast<std::size_t>(std::max(1, group_size_max))),
      clocks_(std::move(clocks)),
      announce_(std::move(announce)),
      tend_(std::move(tend)),
      thread_([this] { loop(); }) {}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void Writer::run(const Work& work) {
  Job job{work};
  {
    std::unique_lock lock(mutex_);
    waiting_.push_back(&job);
    work_.notify_one();
    job.finished.wait(lock, [&] { return job.is_finished; });
  }
  if (job.error) std::rethrow_exception(std::move(job.error));
}

void Writer::loop() {
  std::size_t callers = 0;  // that the last commit saw: served by it or come meanwhile
  Clock::duration patience{};
  for (;;) {
    Group group;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      // Those whose writes the last commit made durable are often back in a moment: together they need one sync, else
      // they would take turns with the others, half of them each.
      work_.wait_for(lock, patience, [&] { return stopping_ || waiting_.size() >= callers; });
      while (!waiting_.empty() && group.size() < group_size_max_) {
        group.push_back(waiting_.front());
        waiting_.pop_front();
      }
    }
    const auto began = Clock::now();
    if (group.size() == 1 || !commit_together(group)) {
      for (Job* job : group) commit_alone(*job);
    }
    patience = (Clock::now() - began) / kPatience;
    callers = conclude(group);
    if (tend_) tend_(*connection_);
  }
}

void Writer::perform(Job& job) {
  Transaction transaction{*connection_, clocks_.now(), clocks_.steady(), {}, false};
  job.work(transaction);
  job.changed = std::move(transaction.changed);
  job.claimable = transaction.claimable;
}

// Work that throws leaves nothing, the others' stands. A fault of the database spoils the whole transaction (SQLite may
// have rolled it back): false, and each is tried alone, so that only what does not fit on a full disk fails.
bool Writer::commit_together(const Group& group) {
  try {
    connection_->change("begin immediate");
    for (Job* job : group) {
      connection_->change("savepoint job");
      try {
        perform(*job);
      } catch (const StoreFault&) {
        throw;
      } catch (...) {
        job->error = std::current_exception();
        connection_->change("rollback to savepoint job");
      }
      connection_->change("release savepoint job");
    }
    connection_->change("commit");
    return true;
  } catch (const StoreFault&) {
    roll_back();
    for (Job* job : group) job->error = nullptr;
    return false;
  }
}

void Writer::commit_alone(Job& job) {
  try {
    connection_->change("begin immediate");
    perform(job);
    connection_->change("commit");
  } catch (...) {
    job.error = std::current_exception();
    roll_back();
  }
}

void Writer::roll_back() {
  try {
    connection_->change("rollback");
  } catch (const StoreFault&) {
    // The database did it itself.
  }
}

std::size_t Writer::conclude(const Group& group) {
  std::vector<std::string> changed;
  bool claimable = false;
  for (const Job* job : group) {
    if (job->error) continue;
    changed.insert(changed.end(), job->changed.begin(), job->changed.end());
    claimable |= job->claimable;
  }
  if (claimable || !changed.empty()) announce_(changed, claimable);
  const std::lock_guard lock(mutex_);
  for (Job* job : group) {
    job->is_finished = true;
    job->finished.notify_one();  // under the lock: the job may be gone as soon as it is free
  }
  return std::min(group.size() + waiting_.size(), group_size_max_);
}

}  // namespace kbench::store
