// What a grader does: claim, keep, report, finish. A write about an attempt that no longer holds its submission does
// nothing.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/store/lanes.h"
#include "daemon/store/sql_store.h"
#include "daemon/store/transitions.h"

namespace kbench::store {

using nlohmann::json;

namespace {

constexpr int kExpiredAtOnce = 100;  // in one transaction
// A submission given back this often is not being given back by chance (a grader that dies of it and releases on
// start).
constexpr int kAttemptsEver = 100;

void keep_result(Transaction& t, const std::string& id, const Outcome& outcome) {
  t.db.change(
      "insert into results (submission, details, log) values (:a, :b, :c) "
      "on conflict (submission) do update set details = excluded.details, log = excluded.log",
      id, outcome.details_json, outcome.log);
}

void finish_verdict(Transaction& t, Row& row, const Outcome& outcome) {
  end_attempt(t, row, "verdict", outcome.verdict);
  row.reward = outcome.reward.value_or(0.0);
  row.interval_low = outcome.interval_low;
  row.interval_high = outcome.interval_high;
  row.metric = outcome.metric;
  row.rank_eligible = outcome.rank_eligible;
  row.rank_reason = outcome.rank_reason;
  finalise(t, row, State::done, outcome.verdict, outcome.reason);
}

}  // namespace

std::optional<Lease> SqlStore::claim(const Wanted& wanted) {
  // A look first, so that an idle grader costs no write.
  const bool anything = readers_.use(
      [&](Connection& db) { return has_delayed_due(db, clocks_.steady()) || next_id(db, wanted).has_value(); });
  if (!anything) return {};
  auto lease = write([&](Transaction& t) -> std::optional<Lease> {
    promote_delayed(t);
    const auto id = next_id(t.db, wanted);
    if (!id) return {};
    auto row = load(t, *id);
    if (!row || !row->waiting) throw StoreFault("the queue's lanes disagree with submission " + *id);
    ++row->attempt;
    row->waiting = false;
    if (row->started == 0) row->started = t.now;
    set_served(t, row->submitter);
    enter(t, *row, State::preparing, {{"grader", wanted.grader}});
    save(t, *row);
    const Millis expires = t.steady + wanted.lease.count();
    t.db.change("insert into attempts (submission, attempt, grader, claimed, expires) values (:a, :b, :c, :d, :e)",
                row->id, row->attempt, wanted.grader, t.now, expires);
    read_labels(t.db, *row);
    const Submission& submission = *row;
    return Lease{submission, {}, row->attempt, expires};
  });
  if (!lease) return {};
  try {
    lease->files = files(lease->submission.id);
  } catch (...) {
    // Nobody knows of this lease: it would only run out, and count as a failure.
    release(lease->submission.id, lease->attempt);
    throw;
  }
  return lease;
}

Renewed SqlStore::renew(const std::string& id, int attempt, std::chrono::milliseconds lease) {
  return write([&](Transaction& t) {
    const Millis expires = t.steady + lease.count();
    if (t.db.change("update attempts set expires = :a where submission = :b and attempt = :c and ended = 0", expires,
                    id, attempt) == 0)
      return Renewed::lost;
    int cancel_requested = 0;
    t.db.one("select cancel_requested from submissions where id = :a", std::tie(cancel_requested), id);
    return cancel_requested ? Renewed::cancel : Renewed::kept;
  });
}

bool SqlStore::set_state(const std::string& id, int attempt, State state) {
  if (!is_leased(state)) throw std::invalid_argument(std::string("a grader cannot set the state ") + name_of(state));
  return write([&](Transaction& t) {
    auto row = load_held(t, id, attempt);
    if (!row) return false;
    if (state <= row->state) return true;  // said before
    enter(t, *row, state, json::object());
    save(t, *row);
    return true;
  });
}

bool SqlStore::append_event(const std::string& id, int attempt, std::int64_t attempt_seq, const std::string& type,
                            const std::string& body) {
  return write([&](Transaction& t) {
    int current = 0;
    std::string state;
    std::int64_t seq = 0;
    if (!t.db.one("select attempt, state, events from submissions where id = :a", std::tie(current, state, seq), id))
      return false;
    if (current != attempt || !is_leased(state_named(state).value_or(State::failed))) return false;
    const auto added = t.db.change(
        "insert into events (submission, seq, attempt, attempt_seq, at, type, json) "
        "values (:a, :b, :c, :d, :e, :f, :g) "
        "on conflict (submission, attempt, attempt_seq) where attempt_seq > 0 do nothing",
        id, seq + 1, attempt, attempt_seq, t.now, type, body);
    if (added == 1) {
      t.db.change("update submissions set events = :a, updated = :b where id = :c", seq + 1, t.now, id);
      t.changed.push_back(id);
    }
    return true;
  });
}

bool SqlStore::finish(const std::string& id, int attempt, const Outcome& outcome, int attempts_max) {
  return write([&](Transaction& t) {
    auto row = load_held(t, id, attempt);
    if (!row) return false;
    keep_result(t, id, outcome);
    switch (outcome.kind) {
      case Outcome::Kind::verdict:
        finish_verdict(t, *row, outcome);
        break;
      case Outcome::Kind::cancelled:
        end_attempt(t, *row, "cancelled", outcome.reason);
        finalise(t, *row, State::cancelled, "", outcome.reason);
        break;
      case Outcome::Kind::infra:
        end_attempt(t, *row, "infra", outcome.reason);
        retry_or_fail(
            t, *row, outcome.reason,
            {outcome.final ? 0 : attempts_max, options_.retry_delay.count(), options_.retry_delay_max.count()});
        break;
    }
    return true;
  });
}

int SqlStore::expire_leases(int attempts_max) {
  // A look first, so that an idle daemon writes nothing.
  const bool anything = readers_.use([&](Connection& db) {
    std::string id;
    return has_delayed_due(db, clocks_.steady()) ||
           db.one("select submission from attempts where ended = 0 and expires <= :a limit 1", std::tie(id),
                  clocks_.steady());
  });
  if (!anything) return 0;
  int expired = 0;
  for (int now_expired = kExpiredAtOnce; now_expired == kExpiredAtOnce; expired += now_expired) {
    now_expired = write([&](Transaction& t) {
      std::vector<std::string> ids;
      std::string id;
      t.db.each(
          "select submission from attempts where ended = 0 and expires <= :a order by expires limit :b", std::tie(id),
          [&] { ids.push_back(id); }, t.steady, kExpiredAtOnce);
      for (const std::string& one : ids) {
        auto row = load(t, one);
        const std::string cause = "queue: the lease of attempt " + std::to_string(row->attempt) + " expired";
        end_attempt(t, *row, "expired", cause);
        retry_or_fail(t, *row, cause, {attempts_max, 0, 0});
      }
      promote_delayed(t);
      return static_cast<int>(ids.size());
    });
  }
  return expired;
}

std::vector<Lease> SqlStore::leases_of(const std::string& grader) {
  static const std::string sql =
      "select expires, " + std::string(kSubmissionColumns) +
      " from submissions join (select submission, expires from attempts where ended = 0 and grader = :a) held"
      " on held.submission = id order by id";
  return readers_.use([&](Connection& db) {
    std::vector<Lease> leases;
    SubmissionOut out;
    Millis expires = 0;
    db.each(
        sql, std::tuple_cat(std::tie(expires), out.columns()),
        [&] { leases.push_back({out.take(), {}, out.row.attempt, expires}); }, grader);
    for (Lease& lease : leases) read_labels(db, lease.submission);
    return leases;
  });
}

bool SqlStore::release(const std::string& id, int attempt) {
  return write([&](Transaction& t) {
    auto row = load_held(t, id, attempt);
    if (!row) return false;
    end_attempt(t, *row, "released", "");
    if (row->cancel_requested) {
      finalise(t, *row, State::cancelled, "", "cancelled");
    } else if (row->attempt >= kAttemptsEver) {
      finalise(t, *row, State::failed, "infra_error", "queue: given back " + std::to_string(row->attempt) + " times");
    } else {
      queue_again(t, *row, "released", 0);
    }
    return true;
  });
}

}  // namespace kbench::store
