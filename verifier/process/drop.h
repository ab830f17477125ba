// Inside the folder only.
#pragma once

#include <sys/types.h>

namespace kbench::process {

// In a fresh child: gives up root for the uid (and the gid of the same number) for good; not traceable, no new
// privileges, dies with its parent. False, with errno, when any of it failed: the child must then exit.
bool drop_to(uid_t uid);

// Closes all descriptors from `first` on. Async-signal-safe.
void close_from(int first);

}  // namespace kbench::process
