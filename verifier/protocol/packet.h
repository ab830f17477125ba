// The set-up message on the wire: one packet holding a Setup, the descriptors beside it as SCM_RIGHTS.
#pragma once

#include "verifier/protocol/protocol.h"

namespace kbench::protocol {

inline constexpr int kPages = 2;  // to_worker, from_worker: the first two descriptors
inline constexpr int kFdsMax = kPages + kTensorsMax;

// Both return 0 or an errno value. `send_setup` never blocks: the packet fits the socket's empty buffer or is refused.
int send_setup(int socket, const Setup& setup, const int* fds, int count);
// Blocks for the packet. Checks magic, version, counts and every index, so that what follows may trust them; on an
// error it has closed what it got. Descriptors arrive close-on-exec.
int receive_setup(int socket, Setup* setup, int* fds, int* count);

}  // namespace kbench::protocol
