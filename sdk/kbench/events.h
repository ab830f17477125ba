// The event schema: what a verifier reports about one attempt, line by line (NDJSON), to whoever listens. The only
// thing besides the task format that verifier and daemon share.
//
// A line is one JSON object: {"seq": n, "ms": t, "type": "…", …}. seq counts from 1 without gaps within an attempt, ms
// is the time since the verifier started. Lines are at most kEventBytesMax long. Unknown types and fields are ignored
// by readers.
//
// Transport: HTTP/1.1 on a unix socket `report.sock` in the report folder.
//   GET  /events      -> 200 {"next": n}: the first seq the reader lacks
//   POST /events      body: NDJSON lines with ascending seq, starting at most at `next`; lines the reader has are
//   skipped
//                     -> 200 {"next": m}; 400 for anything malformed; 409 {"next": n} when there would be a gap
// The verifier appends every line to `events.ndjson` in its output folder before it sends it; the reader merges that
// file when the container has ended, so a lost connection loses nothing.
#pragma once

namespace kbench::events {

inline constexpr int kSchema = 1;
inline constexpr int kEventBytesMax = 64 * 1024;
inline constexpr int kEventsMax =
    20'000;  // per attempt; the verifier stops sending progress past it, a reader refuses more

// type                                       further fields
inline constexpr char kStarted[] = "started";    // version, protocol, device {name, uuid, …}, task, task_hash
inline constexpr char kPhase[] = "phase";        // phase: compile | reference | calibrate | observe | measure | compare
inline constexpr char kCompiled[] = "compiled";  // ok, seconds, log (capped), exit_code
inline constexpr char kCalibrated[] = "calibrated";  // shape, empty_us, writing_us, overhead_us
inline constexpr char kProgress[] = "progress";      // run, runs, repetition, repetitions
inline constexpr char kRunDone[] = "run";            // run, reward, shapes: [{name, median_us, …}], checked
inline constexpr char kVerdict[] =
    "verdict";  // verdict, reason, reward, metric, interval [lo, hi], flags []; always the last
inline constexpr char kInfra[] =
    "infra_error";  // cause, message; always the last: this attempt says nothing of the submission

// Verdicts: the values of "verdict".
inline constexpr char kCorrect[] = "correct";
inline constexpr char kIncorrect[] = "incorrect";
inline constexpr char kCompileError[] = "compile_error";
inline constexpr char kRuntimeError[] = "runtime_error";
inline constexpr char kTimeout[] = "timeout";
inline constexpr char kOutOfMemory[] = "out_of_memory";
inline constexpr char kIntegrityViolation[] = "integrity_violation";
inline constexpr char kRuleViolation[] = "rule_violation";  // right or not, it is not what the task's [rules] ask for

}  // namespace kbench::events
