// One submission inside a write: read it, change it, put it back. `save` alone keeps what hangs on a submission's state
// in step with it: the counts, the submitter's running leases, the lanes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/store/writer.h"

namespace kbench::store {

// The columns that make a Submission, for `into` of the same order.
inline constexpr std::string_view kSubmissionColumns =
    "id, task, task_hash, device, language, submitter, gpu_model, source_hash, gpus, priority, attempt, state, "
    "cancel_requested, "
    "verdict, reason, reward, interval_low, interval_high, metric, rank_eligible, rank_reason, created, updated, "
    "started, finished";

struct SubmissionOut {
  Submission row;
  std::string state;
  int cancel_requested = 0, rank_eligible = 0;
  auto columns() {
    return std::tie(row.id, row.task, row.task_hash, row.device, row.language, row.submitter, row.gpu_model,
                    row.source_hash, row.gpus, row.priority, row.attempt, state, cancel_requested, row.verdict,
                    row.reason, row.reward, row.interval_low, row.interval_high, row.metric, rank_eligible,
                    row.rank_reason, row.created, row.updated, row.started, row.finished);
  }
  Submission take() const;
};
void read_labels(Connection& db, Submission& submission);

struct Row : Submission {
  int failures = 0;
  bool waiting = false;                // in its lane
  Millis not_before = 0;               // queued, but only claimable from then on, by Options::steady
  std::int64_t events = 0;             // seq of the last one
  State state_stored = State::queued;  // what the database has
  bool waiting_stored = false;
};

inline bool is_leased(State s) { return s == State::preparing || s == State::ready || s == State::measuring; }

std::optional<Row> load(Transaction& t, const std::string& id);                    // without labels
std::optional<Row> load_held(Transaction& t, const std::string& id, int attempt);  // only if that attempt holds it
void save(Transaction& t, Row& row);

// Both add an event and leave the row to be saved.
void emit(Transaction& t, Row& row, std::int64_t attempt_seq, const std::string& type, const nlohmann::json& body);
void enter(Transaction& t, Row& row, State state, nlohmann::json more);  // with its "state" event

void end_attempt(Transaction& t, const Row& row, std::string_view outcome, const std::string& cause);
// To a final state, with the "state" and "result" events, and saves.
void finalise(Transaction& t, Row& row, State state, const std::string& verdict, const std::string& reason);

struct Retry {
  int attempts_max;
  Millis delay, delay_max;
};
// After the attempt ended without a verdict: cancelled if that was asked for, queued again while the budget lasts, else
// failed.
void retry_or_fail(Transaction& t, Row& row, const std::string& cause, const Retry& retry);
void queue_again(Transaction& t, Row& row, const std::string& cause, Millis delay);

void count(Transaction& t, State state, int by);
std::string dump(const nlohmann::json& body);  // bytes that are no UTF-8 are replaced

}  // namespace kbench::store
