// What a submitter does: hand in, look, cancel.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/store/lanes.h"
#include "daemon/store/sql_store.h"
#include "daemon/store/transitions.h"

namespace kbench::store {

using nlohmann::json;

namespace {

std::optional<Submission> read_submission(Connection& db, const std::string& id) {
  static const std::string sql = "select " + std::string(kSubmissionColumns) + " from submissions where id = :a";
  SubmissionOut out;
  if (!db.one(sql, out.columns(), id)) return {};
  Submission found = out.take();
  read_labels(db, found);
  return found;
}

std::int64_t count_of(Connection& db, State state) {
  std::int64_t n = 0;
  db.one("select n from state_counts where state = :a", std::tie(n), std::string(name_of(state)));
  return n;
}

void insert(Transaction& t, const std::string& id, const NewSubmission& s) {
  add_submitter(t, s.submitter);
  t.db.change(
      "insert into submissions (id, task, task_hash, device, language, submitter, gpus, gpu_model, priority, "
      "source_hash, "
      "idempotency_key, body_hash, state, waiting, created, updated) "
      "values (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l, 'queued', 1, :m, :n)",
      id, s.task, s.task_hash, s.device, s.language, s.submitter, s.gpus, s.gpu_model, s.priority, s.source_hash,
      s.idempotency_key, s.body_hash, t.now, t.now);
  for (const File& file : s.files) {
    t.db.change("insert into files (submission, path, content) values (:a, :b, :c)", id, file.path,
                BytesIn{file.content});
  }
  for (const auto& [name, value] : s.labels) {
    t.db.change("insert into labels (submission, name, value) values (:a, :b, :c)", id, name, value);
  }
  count(t, State::queued, +1);
}

}  // namespace

SubmitResult SqlStore::submit(const NewSubmission& s, std::int64_t queue_max) {
  return write([&](Transaction& t) -> SubmitResult {
    if (!s.idempotency_key.empty()) {
      std::string known, body_hash;
      if (t.db.one("select id, body_hash from submissions where submitter = :a and idempotency_key = :b and "
                   "idempotency_key <> ''",
                   std::tie(known, body_hash), s.submitter, s.idempotency_key)) {
        const auto how = body_hash == s.body_hash ? Submitted::replayed : Submitted::key_conflict;
        return {how, *read_submission(t.db, known)};
      }
    }
    if (count_of(t.db, State::queued) >= queue_max) return {Submitted::queue_full, {}};
    const std::string id = ids_.next(t.now);
    insert(t, id, s);
    auto row = load(t, id);
    lane_push(t, *row);
    enter(t, *row, State::queued, json::object());
    t.db.change("update submissions set events = :a where id = :b", row->events, id);
    t.changed.push_back(id);
    t.claimable = true;
    row->labels = s.labels;
    const Submission& made = *row;
    return {Submitted::created, made};
  });
}

std::optional<Submission> SqlStore::get(const std::string& id) {
  return readers_.use([&](Connection& db) { return read_submission(db, id); });
}

std::vector<File> SqlStore::files(const std::string& id) {
  return readers_.use([&](Connection& db) {
    std::vector<File> files;
    File file;
    BytesOut content{file.content};
    db.each(
        "select path, content from files where submission = :a order by path", std::tie(file.path, content),
        [&] { files.push_back(file); }, id);
    return files;
  });
}

std::optional<std::string> SqlStore::result_column(const std::string& column, const std::string& id) {
  return readers_.use([&](Connection& db) -> std::optional<std::string> {
    std::string value;
    if (!db.one("select " + column + " from results where submission = :a", std::tie(value), id)) return {};
    return value;
  });
}

std::optional<std::string> SqlStore::details(const std::string& id) { return result_column("details", id); }
std::optional<std::string> SqlStore::log(const std::string& id) { return result_column("log", id); }

std::vector<Event> SqlStore::events(const std::string& id, std::int64_t after, int limit) {
  return readers_.use([&](Connection& db) {
    std::vector<Event> events;
    Event e{};
    db.each(
        "select seq, attempt, at, type, json from events where submission = :a and seq > :b order by seq limit :c",
        std::tie(e.seq, e.attempt, e.at, e.type, e.json), [&] { events.push_back(e); }, id, after, std::max(limit, 0));
    return events;
  });
}

Cancelled SqlStore::cancel(const std::string& id) {
  return write([&](Transaction& t) {
    auto row = load(t, id);
    if (!row) return Cancelled::unknown;
    if (is_final(row->state)) return Cancelled::already_final;
    if (row->state == State::queued) {
      finalise(t, *row, State::cancelled, "", "cancelled while queued");
      return Cancelled::done;
    }
    if (!row->cancel_requested) {
      row->cancel_requested = true;
      emit(t, *row, 0, "cancel", {{"requested", true}});
      save(t, *row);
    }
    return Cancelled::requested;
  });
}

Counts SqlStore::counts() {
  return readers_.use([&](Connection& db) {
    Counts counts;
    std::string state;
    std::int64_t n = 0;
    db.each("select state, n from state_counts", std::tie(state, n), [&] { counts.by_state[state] = n; });
    db.one("select created from submissions where state = 'queued' order by id limit 1",
           std::tie(counts.oldest_queued));
    return counts;
  });
}

}  // namespace kbench::store
