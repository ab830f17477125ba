#include "daemon/store/lanes.h"

#include <algorithm>

namespace kbench::store {

namespace {
constexpr int kPromotedAtOnce = 100;
}

void add_submitter(Transaction& t, const std::string& name) {
  t.db.change("insert into submitters (name) values (:a) on conflict (name) do nothing", name);
}

void set_running(Transaction& t, const std::string& submitter, int by) {
  t.db.change("update submitters set running = running + :a where name = :b", by, submitter);
  t.db.change("update lanes set running = running + :a where submitter = :b", by, submitter);
}

void set_served(Transaction& t, const std::string& submitter) {
  std::int64_t last = 0;
  t.db.one("select coalesce(max(served), 0) from submitters", std::tie(last));
  t.db.change("update submitters set served = :a where name = :b", last + 1, submitter);
  t.db.change("update lanes set served = :a where submitter = :b", last + 1, submitter);
}

void lane_push(Transaction& t, const Submission& s) {
  t.db.change(
      "insert into lanes (submitter, priority, device, gpus, gpu_model, head, running, served) "
      "select name, :a, :b, :c, :d, :e, running, served from submitters where name = :f "
      "on conflict (submitter, priority, device, gpus, gpu_model) do update set head = excluded.head "
      "where excluded.head < lanes.head",
      s.priority, s.device, s.gpus, s.gpu_model, s.id, s.submitter);
}

void lane_pop(Transaction& t, const Submission& s) {
  std::string head;
  const bool more = t.db.one(
      "select id from submissions where submitter = :a and priority = :b and device = :c and gpus = :d "
      "and gpu_model = :e and waiting = 1 order by id limit 1",
      std::tie(head), s.submitter, s.priority, s.device, s.gpus, s.gpu_model);
  if (more) {
    t.db.change(
        "update lanes set head = :a where submitter = :b and priority = :c and device = :d and gpus = :e and gpu_model "
        "= :f "
        "and head <> :g",
        head, s.submitter, s.priority, s.device, s.gpus, s.gpu_model, head);
  } else {
    t.db.change(
        "delete from lanes where submitter = :a and priority = :b and device = :c and gpus = :d and gpu_model = :e",
        s.submitter, s.priority, s.device, s.gpus, s.gpu_model);
  }
}

// One look for each shape of machine that the grader can offer, whatever and how much is waiting.
std::optional<std::string> next_id(Connection& db, const Wanted& wanted) {
  using Place = std::tuple<int, std::int64_t, std::int64_t, std::string>;  // -priority, running, served, head
  std::optional<Place> best;
  std::vector<std::string> models = wanted.gpu_models;
  models.emplace_back();
  for (const std::string& device : wanted.devices) {
    for (int gpus = 0; gpus <= wanted.gpus_max; ++gpus) {
      for (const std::string& model : models) {
        int priority = 0;
        std::int64_t running = 0, served = 0;
        std::string head;
        if (!db.one(
                "select priority, running, served, head from lanes where device = :a and gpus = :b and gpu_model = :c "
                "order by priority desc, running, served, head limit 1",
                std::tie(priority, running, served, head), device, gpus, model)) {
          continue;
        }
        Place place{-priority, running, served, head};
        if (!best || place < *best) best = std::move(place);
      }
    }
  }
  if (!best) return {};
  return std::get<3>(*best);
}

int promote_delayed(Transaction& t) {
  std::vector<std::string> due;
  std::string id;
  t.db.each(
      "select id from submissions where not_before > 0 and not_before <= :a order by not_before limit :b", std::tie(id),
      [&] { due.push_back(id); }, t.steady, kPromotedAtOnce);
  for (const std::string& one : due) {
    auto row = load(t, one);
    if (!row) continue;
    row->waiting = true;
    row->not_before = 0;
    save(t, *row);
  }
  t.claimable |= !due.empty();
  return static_cast<int>(due.size());
}

bool has_delayed_due(Connection& db, Millis steady) {
  std::string id;
  return db.one("select id from submissions where not_before > 0 and not_before <= :a order by not_before limit 1",
                std::tie(id), steady);
}

}  // namespace kbench::store
