// Part of the worker's library too: no exceptions, no allocation, nothing of libstdc++ at run time.
#include "verifier/protocol/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kbench::protocol {
namespace {

bool well_formed(const Setup& s, int fds) {
  if (s.magic != kMagic || s.version != kVersion || s.device > 1 || s.observed > 1) return false;
  if (s.gpus < 1 || s.gpus > kGpusMax) return false;
  if (s.tensor_count > kTensorsMax || s.shape_count > kShapesMax) return false;
  if (fds != kPages + static_cast<int>(s.tensor_count)) return false;
  for (std::uint32_t i = 0; i < s.tensor_count; ++i)
    if (s.tensors[i].tensor_offset >= s.tensors[i].mapped_bytes) return false;
  for (std::uint32_t i = 0; i < s.shape_count; ++i) {
    const SetupShape& shape = s.shapes[i];
    if (shape.slot_count > kSlotsMax || shape.first_pointer > shape.slot_count) return false;
    for (std::uint32_t k = shape.first_pointer; k < shape.slot_count; ++k)
      if (shape.slots[k] >= s.tensor_count) return false;
  }
  return true;
}

}  // namespace

int send_setup(int socket, const Setup& setup, const int* fds, int count) {
  if (count > kFdsMax || !well_formed(setup, count)) return EINVAL;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)] = {};
  iovec data{const_cast<Setup*>(&setup), sizeof setup};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(sizeof setup) ? 0 : sent < 0 ? errno : EMSGSIZE;
}

int receive_setup(int socket, Setup* setup, int* fds, int* count) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)] = {};
  iovec data{setup, sizeof *setup};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  *count = 0;
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    const int here = static_cast<int>((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds + *count, CMSG_DATA(h), sizeof(int) * here);
    *count += here;
  }
  if (got == static_cast<ssize_t>(sizeof *setup) && !(message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) &&
      well_formed(*setup, *count))
    return 0;
  for (int i = 0; i < *count; ++i) close(fds[i]);
  *count = 0;
  return EPROTO;
}

}  // namespace kbench::protocol
