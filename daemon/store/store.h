// What kbenchd must not lose: submissions, attempts, results, events. One interface, SQLite (a single host) or
// PostgreSQL behind it.
//
// Every method is safe from any thread, blocks until its effect is durable, and throws StoreFault when the store cannot
// be reached or is full. Writes of concurrent callers are committed in groups. Every write about an attempt carries
// (submission, attempt) and returns false, having done nothing, when that attempt is no longer the current one: whoever
// gets false must drop what it holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kbench::store {

struct StoreFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Millis = std::int64_t;  // since the epoch, UTC

enum class State : std::uint8_t { queued, preparing, ready, measuring, done, cancelled, failed };
const char* name_of(State state);
std::optional<State> state_named(const std::string& name);
inline bool is_final(State s) { return s >= State::done; }

struct File {
  std::string path, content;
};  // path relative, '/' between folders

struct NewSubmission {
  std::string task, task_hash, device, language, submitter;
  int gpus = 0;           // slots it needs; cpu: 0
  std::string gpu_model;  // asked for; empty: any
  int priority = 0;       // higher first
  std::map<std::string, std::string> labels;
  std::vector<File> files;
  std::string source_hash;                 // sha256 over the files
  std::string idempotency_key, body_hash;  // key empty: none
};

struct Submission {
  std::string id;  // "s-" + 26 characters, sorts by time
  std::string task, task_hash, device, language, submitter, gpu_model, source_hash;
  int gpus = 0, priority = 0, attempt = 0;  // attempt 0: never claimed
  std::map<std::string, std::string> labels;
  State state = State::queued;
  bool cancel_requested = false;
  std::string verdict, reason;   // verdict empty until done or failed
  std::optional<double> reward;  // present when done
  std::optional<double> interval_low, interval_high;
  std::string metric;  // "TFLOP/s" | "GB/s"
  bool rank_eligible = false;
  std::string rank_reason;  // why, or why not
  Millis created = 0, updated = 0, started = 0, finished = 0;
};

struct Event {
  std::int64_t seq;
  int attempt;
  Millis at;
  std::string type, json;
};  // seq counts from 1 a submission

struct Page {
  std::vector<Submission> submissions;
  std::string next;
};  // next empty: no more; else there may be, even after a short or an empty page (see Options::list_rows_max)

struct ListFilter {
  std::string task, submitter, device, verdict, label_key, label_value;
  std::optional<State> state;
  int limit = 50;
  std::string cursor;  // of Page::next; BadCursor when it is none of ours
};
struct BadCursor : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Lease {
  Submission submission;
  std::vector<File> files;
  int attempt;
  Millis expires;  // by Options::steady
};

struct Wanted {  // what a grader can take
  std::string grader;
  std::vector<std::string> devices;  // cpu, cuda
  int gpus_max = 0;
  std::vector<std::string> gpu_models;
  std::chrono::milliseconds lease;
};

struct Outcome {  // how an attempt ends
  enum class Kind : std::uint8_t { verdict, infra, cancelled } kind;
  std::string verdict, reason;  // infra: reason is the cause, "engine: …"
  std::optional<double> reward, interval_low, interval_high;
  std::string metric, details_json, log;
  bool rank_eligible = false;
  std::string rank_reason;
  bool final = true;  // infra: false asks for another attempt while the budget lasts
};

struct Counts {
  std::map<std::string, std::int64_t> by_state;
  Millis oldest_queued = 0;
};

enum class Submitted : std::uint8_t { created, replayed, key_conflict, queue_full };
struct SubmitResult {
  Submitted how;
  Submission submission;
};

enum class Cancelled : std::uint8_t { unknown, already_final, done, requested };  // requested: the grader will do it

enum class Renewed : std::uint8_t { lost, kept, cancel };  // cancel: kept, and the submitter wants it ended

class Store {
 public:
  virtual ~Store() = default;

  virtual SubmitResult submit(const NewSubmission& submission, std::int64_t queue_max) = 0;
  virtual std::optional<Submission> get(const std::string& id) = 0;
  virtual Page list(const ListFilter& filter) = 0;
  virtual std::vector<File> files(const std::string& id) = 0;
  virtual std::optional<std::string> details(const std::string& id) = 0;
  virtual std::optional<std::string> log(const std::string& id) = 0;
  virtual std::vector<Event> events(const std::string& id, std::int64_t after, int limit) = 0;
  virtual Cancelled cancel(const std::string& id) = 0;
  virtual Counts counts() = 0;

  // Leases. claim picks by priority, then fair share between submitters, then age; it makes attempt + 1.
  virtual std::optional<Lease> claim(const Wanted& wanted) = 0;
  virtual Renewed renew(const std::string& id, int attempt, std::chrono::milliseconds lease) = 0;
  virtual bool set_state(const std::string& id, int attempt, State state) = 0;  // forward only
  // `attempt_seq` is the event's own number within the attempt (0: the daemon's own event); a number already there is
  // skipped.
  virtual bool append_event(const std::string& id, int attempt, std::int64_t attempt_seq, const std::string& type,
                            const std::string& json) = 0;
  virtual bool finish(const std::string& id, int attempt, const Outcome& outcome, int attempts_max) = 0;
  virtual int expire_leases(int attempts_max) = 0;  // back to queued, or failed when the budget is spent; how many
  virtual std::vector<Lease> leases_of(const std::string& grader) = 0;  // without files; after a restart
  virtual bool release(const std::string& id, int attempt) = 0;  // back to queued at once, not counted as a failure

  // Called after an event or a state change of a submission became durable; from any thread, must not block.
  virtual void on_change(std::function<void(const std::string& id)> callback) = 0;
  // Called after something became claimable.
  virtual void on_claimable(std::function<void()> callback) = 0;
};

struct Options {
  int group_size_max = 64;                        // writes that one commit makes durable at most
  int readers = 4;                                // connections for reads of one submission, and for the queue's own
  int list_readers = 2;                           // connections for lists
  int list_rows_max = 20'000;                     // submissions that one list looks at, at most
  std::chrono::milliseconds busy_timeout{5'000};  // for another process that holds the database
  std::int64_t wal_bytes_max = 64 << 20;          // a longer write-ahead log is emptied as soon as no reader needs it
  std::chrono::milliseconds retry_delay{2'000};   // before the second attempt; doubles with each failure,
  std::chrono::milliseconds retry_delay_max{60'000};  // up to this
  std::function<Millis()> now;     // what users see; empty: the system's clock, which may be set at any time
  std::function<Millis()> steady;  // what leases and delays go by; empty: `now` at open, and what passed since
};

// Runs the migrations; refuses a database newer than it knows, naming both versions.
std::unique_ptr<Store> open_sqlite(const std::string& path, const Options& options = {});

}  // namespace kbench::store
