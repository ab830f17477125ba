#include "test/unit/store/support.h"

namespace kbench::store::test {

namespace {

struct Invariant {
  const char* says;
  const char* counterexamples;
};  // a query that finds none

constexpr Invariant kInvariants[] = {
    {"counts equal the submissions in each state",
     "select count(*) from state_counts c where n <> (select count(*) from submissions s where s.state = c.state)"},
    {"a submitter's running equals its leased submissions",
     "select count(*) from submitters u where running <> (select count(*) from submissions s where s.submitter = "
     "u.name and "
     "s.state in ('preparing', 'ready', 'measuring'))"},
    {"a submission is leased exactly if its last attempt is held",
     "select count(*) from submissions s where (s.state in ('preparing', 'ready', 'measuring')) <> exists (select 1 "
     "from attempts a "
     "where a.submission = s.id and a.attempt = s.attempt and a.ended = 0)"},
    {"no older attempt is held",
     "select count(*) from attempts a join submissions s on s.id = a.submission where a.ended = 0 and a.attempt <> "
     "s.attempt"},
    {"attempts are numbered without gaps",
     "select count(*) from submissions s where s.attempt <> (select count(*) from attempts a where a.submission = "
     "s.id)"},
    {"a queued one either waits in its lane or for its time, no other does",
     "select count(*) from submissions where (state = 'queued') <> (waiting = 1 or not_before > 0) or (waiting = 1 and "
     "not_before > 0)"},
    {"a lane's head is the oldest waiting there",
     "select count(*) from lanes l where head <> coalesce((select min(id) from submissions s where s.waiting = 1 and "
     "s.submitter = "
     "l.submitter and s.priority = l.priority and s.device = l.device and s.gpus = l.gpus and s.gpu_model = "
     "l.gpu_model), '')"},
    {"each waiting one has a lane",
     "select count(*) from submissions s where waiting = 1 and not exists (select 1 from lanes l where l.submitter = "
     "s.submitter and "
     "l.priority = s.priority and l.device = s.device and l.gpus = s.gpus and l.gpu_model = s.gpu_model)"},
    {"a lane repeats its submitter's numbers",
     "select count(*) from lanes l join submitters u on u.name = l.submitter where l.running <> u.running or l.served "
     "<> u.served"},
    {"events are numbered without gaps",
     "select count(*) from submissions s where s.events <> (select count(*) from events e where e.submission = s.id) "
     "or s.events <> "
     "(select max(seq) from events e where e.submission = s.id)"},
    {"an ended submission has one result event, and it is the last",
     "select count(*) from submissions s where (s.state in ('done', 'cancelled', 'failed')) <> (select count(*) from "
     "events e where "
     "e.submission = s.id and e.type = 'result' and e.seq = s.events)"},
    {"at most one result event",
     "select count(*) from (select 1 from events where type = 'result' group by submission having count(*) > 1)"},
    {"a submission has its files",
     "select count(*) from submissions s where not exists (select 1 from files f where f.submission = s.id)"},
    {"a done one has a verdict and a reward",
     "select count(*) from submissions where state = 'done' and (verdict = '' or reward is null)"},
};

}  // namespace

std::string broken_invariant(Connection& db) {
  if (const std::string found = db.text("pragma integrity_check"); found != "ok") return found;
  for (const Invariant& invariant : kInvariants) {
    std::int64_t n = 0;
    db.one(invariant.counterexamples, std::tie(n));
    if (n != 0) return std::to_string(n) + " break: " + invariant.says;
  }
  return {};
}

}  // namespace kbench::store::test
