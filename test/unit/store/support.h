// A store in a folder of its own, and submissions to put into it.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "daemon/store/connection.h"
#include "daemon/store/store.h"

namespace kbench::store::test {

using namespace std::chrono_literals;

// In memory where there is room: what these tests prove does not depend on the disk, how long they take would.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::error_code none;
    const auto space = std::filesystem::space("/dev/shm", none);
    std::string name = !none && space.available > (512u << 20) && space.available != static_cast<std::uintmax_t>(-1)
                           ? "/dev/shm/kbench-store-XXXXXX"
                           : "/tmp/kbench-store-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string db() const { return (path / "kbench.db").string(); }
};

// Time moves when the test says so; somebody may set the clock meanwhile.
struct Clock {
  std::atomic<Millis> now{1'700'000'000'000}, set_by{0};
};

struct Fixture {
  Folder folder;
  Clock clock;
  Options options;
  std::unique_ptr<Store> store;
  Fixture() {
    options.now = [this] { return clock.now + clock.set_by; };
    options.steady = [this] { return clock.now.load(); };
    open();
  }
  void open() {
    store.reset();
    store = open_sqlite(folder.db(), options);
  }
  Connection raw() const { return Connection("dbname=\"" + folder.db() + "\""); }
};

inline NewSubmission sample(const std::string& submitter = "alice") {
  NewSubmission s;
  s.task = "fused-residual-add-rmsnorm";
  s.task_hash = "t1";
  s.device = "cpu";
  s.language = "cpp";
  s.submitter = submitter;
  s.files = {{"a.cpp", "int main() {}"}, {"lib/b.h", std::string("nul \0 and \xff byte", 16)}};
  s.source_hash = "h1";
  s.body_hash = "b1";
  return s;
}

inline Wanted wanted(const std::string& grader = "g1", std::chrono::milliseconds lease = 30s) {
  return {grader, {"cpu"}, 0, {}, lease};
}

inline Outcome correct(double reward = 12.5) {
  Outcome o{};
  o.kind = Outcome::Kind::verdict;
  o.verdict = "correct";
  o.reward = reward;
  o.interval_low = reward - 1;
  o.interval_high = reward + 1;
  o.metric = "GB/s";
  o.details_json = R"({"runs":5})";
  o.log = "fine";
  o.rank_eligible = true;
  o.rank_reason = "complete";
  return o;
}

inline Outcome infra(const std::string& cause, bool final = false) {
  Outcome o{};
  o.kind = Outcome::Kind::infra;
  o.reason = cause;
  o.final = final;
  return o;
}

inline std::string submit(Store& store, const NewSubmission& s = sample()) {
  return store.submit(s, 1'000'000).submission.id;
}

// So many old ones that ended, quicker than by their whole lives.
inline void fill(Connection& db, int count) {
  db.execute("insert or ignore into submitters (name) values ('old')");
  db.execute(
      "insert into submissions (id, task, task_hash, device, language, submitter, gpus, gpu_model, priority, "
      "source_hash, idempotency_key, body_hash, state, verdict, created, updated) "
      "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < " +
      std::to_string(count) +
      ") select printf('s-%026d', n), 't-' || (n % 3), 'h', 'cpu', 'cpp', 'old', 0, '', 0, 'h', '', 'h', 'done', "
      "'correct', n, n from numbers");
}

// What must hold of any store between two transactions; empty, or what does not.
std::string broken_invariant(Connection& db);

}  // namespace kbench::store::test
