// One random history of kbenchd on one machine, from an empty store to the end of every submission.
#pragma once

#include <cstdint>
#include <string>

namespace kbench::sim {

struct Tally {
  std::uint64_t submissions = 0, attempts = 0, deaths = 0, starts = 0, turns_hash = 0;
};

// What all schedules of a process share: the catalogue, an empty store, SQLite's disk. `folder`: for files, on tmpfs.
void prepare(const std::string& folder);

// Throws Failed with what must not happen. `talk`: what the grader logs goes to stderr.
Tally play(std::uint64_t seed, bool talk);

}  // namespace kbench::sim
