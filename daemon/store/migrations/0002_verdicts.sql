-- Lists by verdict; those that have none yet are found by their state.

create index submissions_by_verdict on submissions (verdict, id) where verdict <> '';
