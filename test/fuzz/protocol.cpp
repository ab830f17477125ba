// What verifier and worker say to each other. First byte even: the worker's page, hostile; odd: the set-up message,
// with as many descriptors as the second byte says.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "test/fuzz/fuzz.h"
#include "verifier/protocol/packet.h"
#include "verifier/protocol/page.h"

using namespace kbench;
using namespace kbench::fuzz;
using namespace kbench::protocol;

namespace {

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

void page(std::string_view bytes) {
  alignas(FromWorker) char raw[sizeof(FromWorker)] = {};
  std::memcpy(raw, bytes.data(), std::min(bytes.size(), sizeof raw));
  for (const std::uint32_t epoch : {0u, 1u, 7u, kStop}) {
    Answer answer = copied(raw);
    const Taken taken = take(answer, epoch);
    require(std::isfinite(answer.call_us) && answer.call_us >= 0, "a time that is a number");
    if (taken == Taken::violation) continue;
    require(answer.done == epoch, "the epoch that was asked for");
    require(answer.status == static_cast<std::uint32_t>(Status::ready) ||
                answer.status == static_cast<std::uint32_t>(Status::done) ||
                answer.status == static_cast<std::uint32_t>(Status::refused) ||
                answer.status == static_cast<std::uint32_t>(Status::failed),
            "a status that there is");
    require(text_of(answer).size() <= sizeof answer.text, "a text within its field");
  }
}

void setup(int descriptors, std::string_view bytes) {
  static const int before = open_descriptors();
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "a pair of sockets");
  const auto sent = std::make_unique<Setup>(), got = std::make_unique<Setup>();
  std::memset(static_cast<void*>(sent.get()), 0, sizeof(Setup));
  std::memcpy(static_cast<void*>(sent.get()), bytes.data(), std::min(bytes.size(), sizeof(Setup)));
  iovec data{sent.get(), bytes.size() > 4 && bytes.size() < 40 ? bytes.size() : sizeof(Setup)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 128)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<std::size_t>(descriptors));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<std::size_t>(descriptors));
    for (int i = 0; i < descriptors; ++i)
      std::memcpy(CMSG_DATA(header) + sizeof(int) * static_cast<std::size_t>(i), &ends[0], sizeof(int));
  }
  require(::sendmsg(ends[0], &message, MSG_NOSIGNAL) >= 0, "the message is sent");
  int fds[kFdsMax], count = 0;
  const int result = receive_setup(ends[1], got.get(), fds, &count);
  require(result == 0 || count == 0, "an error leaves no descriptors");
  if (result == 0) {
    require(count == kPages + static_cast<int>(got->tensor_count), "a descriptor for each");
    for (std::uint32_t s = 0; s < got->shape_count; ++s)
      for (std::uint32_t k = got->shapes[s].first_pointer; k < got->shapes[s].slot_count; ++k)
        require(got->shapes[s].slots[k] < got->tensor_count, "pointers to tensors that there are");
    for (int i = 0; i < count; ++i) ::close(fds[i]);
  }
  ::close(ends[0]);
  ::close(ends[1]);
  require(open_descriptors() == before, "no descriptor is leaked");
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  if (input.byte() % 2 == 0) {
    page(input.rest());
  } else {
    const int descriptors = static_cast<int>(input.byte() % 100);
    setup(descriptors, input.rest());
  }
  return 0;
}
