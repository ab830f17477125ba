// Inside grade/: the steps before the first worker. Each fills its part of the session; they run in this order.
#pragma once

#include "verifier/grade/session.h"

namespace kbench::grade {

void load_task(Session& session);
void open_device(Session& session);
void take_artefact(
    Session& session);  // compiles first, under a uid of its own, when given sources. Throws Finding(compile_error)
void load_reference(Session& session);
void make_workspace(Session& session);  // buffers, rules, odd shapes
void draw_plans(Session& session);      // all that is random in the grading, and the memory for what will be compared

// From share/gpus.toml beside this program; empty for a GPU that is not in it.
measure::Peaks load_peaks(const std::string& device_name);

}  // namespace kbench::grade
