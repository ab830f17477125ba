-- Submissions, their attempts and events, and the queue.
--
-- Ids of submissions sort by time, so "oldest first" is "by id". Times are milliseconds since the epoch, 0: not yet.

create table submissions (
  id text primary key not null,
  task text not null,
  task_hash text not null,
  device text not null,
  language text not null,
  submitter text not null,
  gpus integer not null,
  gpu_model text not null,
  priority integer not null,
  source_hash text not null,
  idempotency_key text not null,
  body_hash text not null,
  state text not null,
  attempt integer not null default 0,
  failures integer not null default 0,            -- attempts that ended by an infrastructure fault
  waiting integer not null default 0,             -- 1: in its lane, claimable
  not_before bigint not null default 0,           -- of one that waits for its retry
  cancel_requested integer not null default 0,
  verdict text not null default '',
  reason text not null default '',
  reward double precision,
  interval_low double precision,
  interval_high double precision,
  metric text not null default '',
  rank_eligible integer not null default 0,
  rank_reason text not null default '',
  events bigint not null default 0,               -- seq of the last event
  created bigint not null,
  updated bigint not null,
  started bigint not null default 0,
  finished bigint not null default 0
);
create index submissions_by_state on submissions (state, id);
create index submissions_by_task on submissions (task, id);
create index submissions_by_submitter on submissions (submitter, id);
create unique index submissions_by_key on submissions (submitter, idempotency_key) where idempotency_key <> '';
create index submissions_waiting on submissions (submitter, priority, device, gpus, gpu_model, id) where waiting = 1;
create index submissions_delayed on submissions (not_before) where not_before > 0;

create table files (
  submission text not null references submissions (id),
  path text not null,
  content blob not null,
  primary key (submission, path)
);

create table labels (
  submission text not null references submissions (id),
  name text not null,
  value text not null,
  primary key (submission, name)
);
create index labels_by_value on labels (name, value, submission);

create table results (
  submission text primary key not null references submissions (id),
  details text not null,
  log text not null
);

create table attempts (
  submission text not null references submissions (id),
  attempt integer not null,
  grader text not null,
  claimed bigint not null,
  expires bigint not null,
  ended bigint not null default 0,                -- 0: the lease is held
  outcome text not null default '',               -- verdict | infra | cancelled | expired | released
  cause text not null default '',
  primary key (submission, attempt)
);
create index attempts_held_until on attempts (expires) where ended = 0;
create index attempts_held_by on attempts (grader) where ended = 0;

create table events (
  submission text not null references submissions (id),
  seq bigint not null,
  attempt integer not null,
  attempt_seq bigint not null,                    -- 0: the daemon's own
  at bigint not null,
  type text not null,
  json text not null,
  primary key (submission, seq)
);
create unique index events_of_attempt on events (submission, attempt, attempt_seq) where attempt_seq > 0;

-- How many submissions are in each state, so that nobody has to count them.
create table state_counts (
  state text primary key not null,
  n bigint not null
);
insert into state_counts (state, n) values ('queued', 0), ('preparing', 0), ('ready', 0), ('measuring', 0), ('done', 0),
  ('cancelled', 0), ('failed', 0);

create table submitters (
  name text primary key not null,
  running bigint not null default 0,              -- leases held for its submissions
  served bigint not null default 0                -- number of the claim that served it last; 0: never
);
create index submitters_served on submitters (served);

-- A lane holds what one submitter waits for with one priority on one shape of machine: `head` is its oldest. A lane exists while it
-- is not empty. `running` and `served` repeat the submitter's, so that lanes_order finds the next claim by one look.
create table lanes (
  submitter text not null references submitters (name),
  priority integer not null,
  device text not null,
  gpus integer not null,
  gpu_model text not null,
  head text not null,
  running bigint not null,
  served bigint not null,
  primary key (submitter, priority, device, gpus, gpu_model)
);
create index lanes_order on lanes (device, gpus, gpu_model, priority desc, running, served, head);
