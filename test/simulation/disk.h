// A disk in memory for SQLite (its VFS): survives the death of the program, and fails when told to.
//
// What a program had handed to write() before it died is kept, as by a kernel that goes on; a write may be cut in two
// by the death. Locks and shared memory die with the program. Locking is SQLite's own protocol, so that its connections
// exclude each other as they do on a file system.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace kbench::sim {

class Disk {
 public:
  // From now on SQLite's default for every file; once a process. SQLite is told that it has one thread: fibers change
  // only where it has called us.
  static void install();
  static Disk* current;  // what SQLite sees

  double faults = 0;      // probability that a call fails: no space, or an input/output error
  void forget_program();  // locks, shared memory, handles
  void copy_from(const Disk& other);
  std::int64_t size(const std::string& name) const;  // -1: there is none

  struct File;
  std::map<std::string, std::shared_ptr<File>> files;
};

}  // namespace kbench::sim
