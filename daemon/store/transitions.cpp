#include "daemon/store/transitions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/store/lanes.h"

namespace kbench::store {

using nlohmann::json;

Submission SubmissionOut::take() const {
  Submission s = row;
  const auto named = state_named(state);
  if (!named) throw StoreFault("unknown state '" + state + "' of " + row.id);
  s.state = *named;
  s.cancel_requested = cancel_requested != 0;
  s.rank_eligible = rank_eligible != 0;
  return s;
}

void read_labels(Connection& db, Submission& submission) {
  std::string name, value;
  db.each(
      "select name, value from labels where submission = :a", std::tie(name, value),
      [&] { submission.labels[name] = value; }, submission.id);
}

std::optional<Row> load(Transaction& t, const std::string& id) {
  static const std::string sql = "select failures, waiting, not_before, events, " + std::string(kSubmissionColumns) +
                                 " from submissions where id = :a";
  SubmissionOut out;
  Row row;
  int waiting = 0;
  if (!t.db.one(sql, std::tuple_cat(std::tie(row.failures, waiting, row.not_before, row.events), out.columns()), id))
    return {};
  static_cast<Submission&>(row) = out.take();
  row.waiting = row.waiting_stored = waiting != 0;
  row.state_stored = row.state;
  return row;
}

std::optional<Row> load_held(Transaction& t, const std::string& id, int attempt) {
  auto row = load(t, id);
  if (!row || row->attempt != attempt || !is_leased(row->state)) return {};
  return row;
}

void save(Transaction& t, Row& row) {
  row.updated = t.now;
  t.db.change(
      "update submissions set state = :a, attempt = :b, failures = :c, waiting = :d, not_before = :e, cancel_requested "
      "= :f, "
      "verdict = :g, reason = :h, reward = :i, interval_low = :j, interval_high = :k, metric = :l, rank_eligible = :m, "
      "rank_reason = :n, events = :o, updated = :p, started = :q, finished = :r where id = :s",
      std::string(name_of(row.state)), row.attempt, row.failures, int{row.waiting}, row.not_before,
      int{row.cancel_requested}, row.verdict, row.reason, row.reward, row.interval_low, row.interval_high, row.metric,
      int{row.rank_eligible}, row.rank_reason, row.events, row.updated, row.started, row.finished, row.id);
  if (row.state != row.state_stored) {
    count(t, row.state_stored, -1);
    count(t, row.state, +1);
  }
  if (const int by = int{is_leased(row.state)} - int{is_leased(row.state_stored)}; by != 0)
    set_running(t, row.submitter, by);
  if (row.waiting && !row.waiting_stored) lane_push(t, row);
  if (!row.waiting && row.waiting_stored) lane_pop(t, row);
  row.state_stored = row.state;
  row.waiting_stored = row.waiting;
  t.changed.push_back(row.id);
}

void emit(Transaction& t, Row& row, std::int64_t attempt_seq, const std::string& type, const json& body) {
  ++row.events;
  t.db.change(
      "insert into events (submission, seq, attempt, attempt_seq, at, type, json) values (:a, :b, :c, :d, :e, :f, :g)",
      row.id, row.events, row.attempt, attempt_seq, t.now, type, dump(body));
}

void enter(Transaction& t, Row& row, State state, json more) {
  row.state = state;
  more["state"] = name_of(state);
  more["attempt"] = row.attempt;
  emit(t, row, 0, "state", more);
}

void end_attempt(Transaction& t, const Row& row, std::string_view outcome, const std::string& cause) {
  t.db.change(
      "update attempts set ended = :a, outcome = :b, cause = :c where submission = :d and attempt = :e and ended = 0",
      t.now, std::string(outcome), cause, row.id, row.attempt);
}

void finalise(Transaction& t, Row& row, State state, const std::string& verdict, const std::string& reason) {
  row.verdict = verdict;
  row.reason = reason;
  row.waiting = false;
  row.not_before = 0;
  row.finished = t.now;
  enter(t, row, state, json::object());
  json result{{"state", name_of(state)}, {"rank_eligible", row.rank_eligible}, {"rank_reason", row.rank_reason}};
  result["verdict"] = verdict.empty() ? json(nullptr) : json(verdict);
  result["reason"] = reason;
  result["reward"] = row.reward ? json(*row.reward) : json(nullptr);
  if (row.interval_low && row.interval_high) result["interval"] = {*row.interval_low, *row.interval_high};
  if (!row.metric.empty()) result["metric"] = row.metric;
  emit(t, row, 0, "result", result);
  save(t, row);
}

void retry_or_fail(Transaction& t, Row& row, const std::string& cause, const Retry& retry) {
  if (row.cancel_requested) return finalise(t, row, State::cancelled, "", cause);
  ++row.failures;
  if (row.failures >= retry.attempts_max) return finalise(t, row, State::failed, "infra_error", cause);
  const int doublings = std::min(row.failures - 1, 20);
  queue_again(t, row, cause, std::min(retry.delay << doublings, retry.delay_max));
}

void queue_again(Transaction& t, Row& row, const std::string& cause, Millis delay) {
  row.waiting = delay <= 0;
  row.not_before = row.waiting ? 0 : t.steady + delay;
  t.claimable |= row.waiting;
  enter(t, row, State::queued, {{"cause", cause}, {"not_before", row.waiting ? 0 : t.now + delay}});
  save(t, row);
}

void count(Transaction& t, State state, int by) {
  t.db.change("update state_counts set n = n + :a where state = :b", by, std::string(name_of(state)));
}

std::string dump(const json& body) { return body.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace kbench::store
