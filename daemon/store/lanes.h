// Who is next: priority, then the submitter with the fewest running, then the one not served for longest, then age.
#pragma once

#include "daemon/store/transitions.h"

namespace kbench::store {

void lane_push(Transaction& t, const Submission& submission);  // after its row says waiting
void lane_pop(Transaction& t, const Submission& submission);   // after its row says otherwise
void add_submitter(Transaction& t, const std::string& name);
void set_running(Transaction& t, const std::string& submitter, int by);
void set_served(Transaction& t, const std::string& submitter);

std::optional<std::string> next_id(Connection& db, const Wanted& wanted);
int promote_delayed(Transaction& t);  // those whose time has come become claimable; how many
bool has_delayed_due(Connection& db, Millis steady);

}  // namespace kbench::store
